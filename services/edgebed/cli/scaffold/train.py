"""A program to put your own in the place of: rank 0 sends something to all others, and waits for their answers."""

import os
import socket
import time

rank = int(os.environ["RANK"])
hub = (os.environ["MASTER_ADDR"], 8000)
if rank == 0:
    with socket.create_server(("", 8000)) as server:
        clients = [server.accept()[0] for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
    for step in range(1, 101):
        for client in clients:
            client.sendall(bytes(20_000))
        for client in clients:
            client.recv(1, socket.MSG_WAITALL)
        print(f"step {step} loss={1 / step:.4f}", flush=True)
else:
    with socket.create_connection(hub) as server:
        while server.recv(20_000, socket.MSG_WAITALL):
            time.sleep(0.01)
            server.sendall(b"x")
