"""A client that waits for its answers, for first_server.py."""

import sys

import wirecall

with wirecall.connect(sys.argv[1] if len(sys.argv) > 1 else "tcp://127.0.0.1:8545") as c:
    print(c.sum(2, 3))
    print(c.sum(a=2, b=3))
    print(c["greet"]("Ada", _timeout=0.5))
    c.notify("greet", "nobody")

    with c.batch() as b:
        sums = [b.sum(i, i) for i in range(3)]
    print([each.result() for each in sums])

    try:
        c.sum(2, "three")
    except wirecall.InvalidParams as error:
        print(error.data["loc"], error.data["expected"])
