# Runs a command of Flower's with a folder of its own, where `flwr` finds the SuperLink's address.
export FLWR_HOME="$TMPDIR/flwr"
mkdir -p "$FLWR_HOME"
printf '[superlink.hub]\naddress = "hub-0:8000"\ninsecure = true\n' >"$FLWR_HOME/config.toml"
exec "$@"
