"""What goes wrong, and what the caller learns of it."""

import logging

import wirecall

logging.getLogger("wirecall").setLevel(logging.CRITICAL)  # the tracebacks of this example need not be seen
app = wirecall.Server("errors")


@app
def withdraw(amount: int) -> float:
    if amount > 100:
        raise wirecall.Error(1001, "not enough money", {"left": 100})
    return 100 / amount


with app.serving() as uri, wirecall.connect(uri) as c:
    for amount in (50, 200, 0, "ten"):
        try:
            print(c.withdraw(amount))
        except wirecall.InvalidParams as error:
            print("refused before it was called:", error)
        except wirecall.InternalError as error:
            print("an exception, which only the server's log tells of:", error)
        except wirecall.Error as error:
            print(error.code, error.message, error.data)
    try:
        c.withdrwa(1)
    except wirecall.MethodNotFound as error:
        print(error)
