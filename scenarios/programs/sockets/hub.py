"""A parameter server over plain sockets: each client gets the weights, and sends a gradient, again and again."""

import argparse
import array
import contextlib
import socket
import struct
import threading

SIZE, RATE = 10_000, 0.02
HEAD = struct.Struct("!I")


class Hub:
    """The weights, which clients change one after another."""

    def __init__(self, updates: int) -> None:
        self.updates = updates
        self.done = 0
        self.weights = array.array("d", bytes(8 * SIZE))
        self.lock = threading.Lock()

    def apply(self, gradient: "array.array[float]") -> None:
        """Take a step, and say how large the gradient was."""
        with self.lock:
            if self.done == self.updates:
                return
            for k, each in enumerate(gradient):
                self.weights[k] -= RATE * each
            self.done += 1
            loss = sum(each * each for each in gradient) / SIZE
            print(f"update {self.done} loss={loss:.6f}", flush=True)

    def serve(self, client: socket.socket) -> None:
        """Serve a client until all is done, or it has gone."""
        with client, contextlib.suppress(OSError), client.makefile("rwb") as stream:
            while True:
                is_over = self.done == self.updates
                stream.write(HEAD.pack(0 if is_over else SIZE))
                if is_over:
                    return
                stream.write(self.weights.tobytes())
                stream.flush()
                data = stream.read(8 * SIZE)
                if len(data) < 8 * SIZE:
                    return
                self.apply(array.array("d", data))


def main() -> None:
    """Accept clients until all updates are there."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=150)
    hub = Hub(parser.parse_args().updates)
    with socket.create_server(("", 8000)) as server:
        server.settimeout(0.2)
        while hub.done < hub.updates:
            with contextlib.suppress(TimeoutError):
                client, _ = server.accept()
                client.settimeout(10)
                threading.Thread(target=hub.serve, args=(client,), daemon=True).start()


if __name__ == "__main__":
    main()
