"""web3.py: calls, batches, errors and subscriptions by AsyncIPCProvider; calls by HTTP."""

import asyncio
import os

from web3 import AsyncIPCProvider, AsyncWeb3, Web3
from web3.exceptions import Web3RPCError


async def main() -> None:
    async with AsyncWeb3(AsyncIPCProvider(os.environ["UNIX_PATH"])) as w3:
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
        subscription = await w3.eth.subscribe("newHeads")
        numbers = []
        async for message in w3.socket.process_subscriptions():
            assert message["subscription"] == subscription
            numbers.append(message["result"]["number"])
            if len(numbers) == 10:
                break
        assert numbers == list(range(1, 11)), numbers
        assert await w3.eth.unsubscribe(subscription) is True

    w3 = Web3(Web3.HTTPProvider(f"http://127.0.0.1:{os.environ['TCP_PORT']}/rpc"))
    assert w3.eth.chain_id == 1
    assert w3.provider.make_request("subtract", [5, 3])["result"] == 2


asyncio.run(main())
