// Shared by the tests of the backends: a backend in each of the worlds, and the completions of its turns.
#pragma once

#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/runtime/backend_world.hpp"

namespace wirecall::runtime {

class BackendTest : public testing::TestWithParam<WorldKind> {
 protected:
  void SetUp() override {
    std::string reason;
    world_ = GetParam().make(reason);
    if (world_ == nullptr) GTEST_SKIP() << reason;
  }
  // Runs turns until `done`; `seen` receives each completion.
  void run_until(const std::function<bool()>& done) {
    for (int turns = 0; !done() && turns < 10'000; ++turns) {
      turn(std::chrono::milliseconds{1});
    }
    ASSERT_TRUE(done());
  }
  void turn(std::chrono::nanoseconds wait_max) { turn_until(world_->backend().now() + wait_max); }
  void turn_until(std::chrono::nanoseconds until) {
    std::vector<Operation> now = std::move(submitted_);
    submitted_.clear();
    for (Completion& completion : world_->backend().turn(now, until)) {
      if (completion.kind == OperationKind::receive && !completion.last) {
        EXPECT_EQ(*(completion.bytes.data() + completion.bytes.size()), '\0');
        received_.append(completion.bytes.data(), completion.bytes.size());
        continue;
      }
      if (completion.descriptor >= 0) {
        EXPECT_FALSE(completion.last);
        accepted_.push_back(std::exchange(completion.descriptor, -1));
        continue;
      }
      seen_.push_back(
          {completion.kind, completion.handle, completion.error, std::move(completion.buffer), completion.ready});
    }
  }
  [[nodiscard]] std::chrono::nanoseconds in_a_moment() {
    return world_->backend().now() + std::chrono::milliseconds{1};
  }
  void submit(OperationKind kind, Handle handle) {
    submitted_.push_back({.kind = kind, .handle = handle, .buffer = {}});
  }
  void open(Handle handle) {
    submitted_.push_back(
        {.kind = OperationKind::open, .handle = handle, .descriptor = world_->connect(peer_), .buffer = {}});
  }
  void send(Handle handle, std::string_view bytes, bool prompt) {
    submitted_.push_back({.kind = OperationKind::send, .prompt = prompt, .handle = handle, .buffer = Buffer{bytes}});
  }

  struct Seen {
    OperationKind kind;
    Handle handle;
    int error;
    Buffer buffer;
    Readiness ready;
  };

  std::unique_ptr<World> world_;
  std::unique_ptr<Peer> peer_;
  std::vector<Operation> submitted_;
  std::vector<Seen> seen_;
  std::string received_;
  std::vector<int> accepted_;
  const Handle handle_{.slot = 0, .generation = 0};
};

}  // namespace wirecall::runtime
