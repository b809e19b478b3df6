"""Ray Serve with its batching: with_ray.py PORT."""

import sys
import threading
import time

import ray
from ray import serve
from starlette.requests import Request


@serve.deployment(max_ongoing_requests=1024, ray_actor_options={"num_cpus": 0})
class Model:
    @serve.batch(max_batch_size=128, batch_wait_timeout_s=0.002)
    async def model(self, numbers: list[int]) -> list[int]:
        time.sleep(1e-3 + 10e-6 * len(numbers))
        return numbers

    async def __call__(self, request: Request) -> int:
        return await self.model((await request.json())["number"])


ray.init(include_dashboard=False, log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])}, logging_config={"enable_access_log": False})
serve.run(Model.bind())
threading.Event().wait()
