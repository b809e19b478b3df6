// For tests of servers that run once on each engine that the kernel allows.
#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <system_error>

#include "runtime/backend.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

// Unless a test is about that, a slow machine must not trigger a loop takeover.
inline Options threads(std::uint32_t count) {
  Options options;
  options.thread_count = count;
  options.takeover_ms = 0;
  return options;
}

inline void skip_where_refused(Engine engine) {
  if (engine != Engine::uring) return;
  if (!runtime::kRingsAreFollowed) GTEST_SKIP() << "ThreadSanitizer cannot follow io_uring";
  try {
    static_cast<void>(runtime::make_uring_backend());
  } catch (const std::system_error& refusal) {
    GTEST_SKIP() << "the kernel refuses io_uring: " << refusal.what();
  }
}

class EngineTest : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override { skip_where_refused(GetParam()); }
  static Options options(std::uint32_t count) {
    Options given = threads(count);
    given.engine = GetParam();
    return given;
  }
};

inline const auto kEachEngine = testing::Values(Engine::epoll, Engine::uring);

inline std::string engine_name(const testing::TestParamInfo<Engine>& info) {
  return info.param == Engine::epoll ? "epoll" : "uring";
}

}  // namespace wirecall::net
