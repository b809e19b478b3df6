"""A server: plain functions become methods. Run it, then `wirecall call sum 2 3`, or blocking_client.py."""

import sys

import wirecall

app = wirecall.Server("first")


@app
def sum(a: int, b: int = 1) -> int:
    "Add two integers"
    return a + b


@app
def greet(name: str, *, loud: bool = False) -> str:
    "Say hello"
    text = f"Hello, {name}!"
    return text.upper() if loud else text


if __name__ == "__main__":
    app.run(sys.argv[1] if len(sys.argv) > 1 else "tcp://127.0.0.1:8545")
