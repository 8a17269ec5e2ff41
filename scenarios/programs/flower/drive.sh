# Runs the app on the SuperNodes that there are, then says what Flower counted of its bytes.
flwr run . hub --stream && flwr list hub --format json
