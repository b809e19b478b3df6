// A registry, a loop, and a pool of threads that the tests of batched methods move step by step.
#pragma once

#include <chrono>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/batched.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {

class BatchedMethod : public testing::Test {
 protected:
  // Runs what it is given when it is told to.
  struct Pool final : detail::BlockingPool {
    void run(Work work) override { works.push_back(std::move(work)); }
    // What waits now, as a thread of the pool and then the loop do.
    void run_all() {
      for (Work& work : std::exchange(works, {})) work()();
    }
    std::deque<Work> works;
  };
  struct Inbox final : detail::Executor {
    void post(std::shared_ptr<Continuation> continuation) noexcept override {
      posted.push_back(std::move(continuation));
    }
    void run() {
      while (!posted.empty()) {
        const std::shared_ptr<Continuation> next = std::move(posted.front());
        posted.pop_front();
        next->resume();
      }
    }
    std::deque<std::shared_ptr<Continuation>> posted;
  };
  struct Peer {
    explicit Peer(BatchedMethod& test) : Peer(test, test.loop) {}
    Peer(BatchedMethod& test, rpc::LoopContext& loop)
        : dispatcher(test.registry, sink, test.limits, loop), limits_(test.limits) {}
    void send(std::string_view text) {
      const test::PaddedText frame{text};
      Received message;
      ASSERT_EQ(read_message(frame.view(), limits_, true, message).status, ScanStatus::complete);
      dispatcher.handle(message);
    }
    void call(std::string_view method, std::string_view params, int id) {
      send(test::request(method, params, std::to_string(id)));
    }
    void cancel(int id) { send(test::notification("$/cancelRequest", R"({"id":)" + std::to_string(id) + "}")); }

    test::RecordingSink sink;
    rpc::Dispatcher dispatcher;

   private:
    const Limits& limits_;
  };

  BatchedMethod() {
    loop.services.blocking_pool = &pool;
    loop.tasks.set_executor(inbox);
  }
  ~BatchedMethod() override { peer.reset(); }

  /// Has it run on the loop from now on, which others could take over.
  void make_double_quick() {
    loop.services.watchdog_slot = &watchdog_slot;
    for (;;) {
      peer->call("double", "[0]", 0);
      const bool is_quick = !inbox->posted.empty();
      settle();
      if (is_quick) break;
    }
    batches.clear();
    static_cast<void>(received());
  }
  /// A method that doubles, and notes each batch.
  void add_double(BatchOptions options) {
    registry.method("double",
                    batched(
                        [this](const std::vector<int>& numbers) {
                          batches.push_back(numbers);
                          std::vector<int> doubled;
                          for (const int number : numbers) doubled.push_back(2 * number);
                          return doubled;
                        },
                        std::move(options)),
                    {"number"});
  }
  /// All that can happen without time passing.
  void settle() {
    do {
      scheduler.advance(std::chrono::nanoseconds{0});
      pool.run_all();
      inbox->run();
    } while (!pool.works.empty() || !inbox->posted.empty());
  }
  std::string received() { return peer->sink.take(); }

  struct NoWatchdog final : detail::Watchdog {
    void wake() noexcept override {}
    void rejoin(detail::WatchdogSlot& /*slot*/) noexcept override {}
  };

  NoWatchdog watchdog;
  detail::WatchdogSlot watchdog_slot{watchdog};
  test::VirtualScheduler scheduler;
  Limits limits;
  std::vector<std::string> log;
  LogSink log_sink = [this](const LogRecord& record) { log.emplace_back(record.message); };
  Pool pool;
  std::shared_ptr<Inbox> inbox = std::make_shared<Inbox>();
  Registry registry;
  rpc::LoopContext loop{json_codec(), &scheduler, &log_sink};
  std::unique_ptr<Peer> peer = std::make_unique<Peer>(*this);
  std::vector<std::vector<int>> batches;
};

using Batches = std::vector<std::vector<int>>;

}  // namespace wirecall
