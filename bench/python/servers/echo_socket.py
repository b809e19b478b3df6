"""What a socket costs in Python: sends back each MiB."""

import socket

with socket.create_server(("127.0.0.1", 0)) as listener:
    print(f"tcp://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    connection, _ = listener.accept()
    block = memoryview(bytearray(1 << 20))
    while True:
        got = 0
        while got < len(block):
            count = connection.recv_into(block[got:])
            if count == 0:
                raise SystemExit
            got += count
        connection.sendall(block)
