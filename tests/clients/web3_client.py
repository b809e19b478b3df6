"""web3.py: calls, batches, errors and subscriptions by AsyncIPCProvider, at a server and through a broker; calls and
batches by HTTP."""

import asyncio
import os

from web3 import AsyncIPCProvider, AsyncWeb3, Web3
from web3.exceptions import Web3RPCError


def refused(error: Web3RPCError) -> None:
    """It is for a batch beyond the limit."""
    told = error.rpc_response["error"]
    assert (told["code"], told["data"]["limit"]) == (-32600, "batch"), error


async def check(path: str) -> None:
    async with AsyncWeb3(AsyncIPCProvider(path, request_information_cache_size=2000)) as w3:
        assert await w3.eth.chain_id == 1
        assert await w3.eth.block_number == 16
        answer = await w3.provider.make_request("subtract", [42, 23])
        assert answer["result"] == 19, answer
        answers = await asyncio.gather(*(w3.provider.make_request("echo", [i]) for i in range(100)))
        assert [one["result"] for one in answers] == list(range(100))
        try:
            await w3.eth.gas_price  # a method that is not there
            raise AssertionError("eth_gasPrice is there")
        except Web3RPCError as error:
            assert error.rpc_response["error"]["code"] == -32601, error
        async with w3.batch_requests() as batch:
            batch.add(w3.eth.chain_id)
            batch.add(w3.eth.block_number)
            assert await batch.async_execute() == [1, 16]
        try:
            async with w3.batch_requests() as batch:
                for _ in range(1001):
                    batch.add(w3.eth.chain_id)
                await batch.async_execute()
            raise AssertionError("a batch of 1,001 is answered")
        except Web3RPCError as error:
            refused(error)
        subscription = await w3.eth.subscribe("newHeads")
        numbers = []
        async for message in w3.socket.process_subscriptions():
            assert message["subscription"] == subscription
            numbers.append(message["result"]["number"])
            if len(numbers) == 10:
                break
        assert numbers == list(range(1, 11)), numbers
        assert await w3.eth.unsubscribe(subscription) is True


async def main() -> None:
    await check(os.environ["UNIX_PATH"])
    await check(os.environ["BROKER_PATH"])
    w3 = Web3(Web3.HTTPProvider(f"http://127.0.0.1:{os.environ['TCP_PORT']}/rpc"))
    assert w3.eth.chain_id == 1
    assert w3.provider.make_request("subtract", [5, 3])["result"] == 2
    try:
        with w3.batch_requests() as batch:
            for _ in range(1001):
                batch.add(w3.eth.chain_id)
            batch.execute()
        raise AssertionError("a batch of 1,001 is answered")
    except Web3RPCError as error:
        refused(error)


asyncio.run(main())
