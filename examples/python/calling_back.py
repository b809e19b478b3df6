"""A handler that calls whoever has called it."""

import wirecall

app = wirecall.Server("calling_back")


@app
async def rename(old: str, new: str, ctx: wirecall.Context) -> str:
    ctx.notify("log", f"{old} wants to be {new}")
    return new if await ctx.call("confirm", old=old, new=new) else old


with app.serving() as uri, wirecall.connect(uri) as c:
    c.offer("confirm", lambda old, new: new != "root")
    c.offer("log", print)
    print(c.rename("ann", "bob"))
    print(c.rename("ann", "root"))
