// wirecall/module.hpp: methods of a shared library, called in this process.
#include "wirecall/module.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "wirecall/server.hpp"

namespace wirecall {
namespace {

std::string path_of(const std::string& name) { return MODULES "/" + name + ".so"; }

std::string refusal(const std::string& path) {
  try {
    const Module module{path};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(Module, ItsMethodsAreCalledInEveryWay) {
  Module math{path_of("math")};
  EXPECT_EQ(math.call<int>("math.add", 2, 3), 5);
  EXPECT_EQ(math.call<int>("math.add", arg("b") = 2, arg("a") = 3), 5);
  std::future<int> later = math.request<int>("math.add", 4, 5).future();
  EXPECT_EQ(later.get(), 9);
  const auto failed = math.try_call<int>("math.add", "x", 3);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), -32602);
  EXPECT_EQ(math.try_call<int>("math.none").error().code(), -32601);
}

TEST(Module, SeveralAreOfTheirOwn) {
  Module first{path_of("math")};
  Module second{path_of("math")};
  EXPECT_EQ(first.call<int>("math.add", 1, 1) + second.call<int>("math.add", 2, 2), 6);
  Module moved{std::move(first)};
  EXPECT_EQ(moved.call<int>("math.add", 1, 2), 3);
  second = std::move(moved);
  EXPECT_EQ(second.call<int>("math.add", 1, 3), 4);
}

TEST(Module, SeveralThreadsCallIt) {
  Module math{path_of("math")};
  std::vector<std::jthread> threads;
  for (int n = 0; n < 4; ++n) {
    threads.emplace_back([&math, n] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(math.call<int>("math.add", n, i), n + i);
    });
  }
}

TEST(Module, WhatIsNoneIsRefusedWithTheCause) {
  EXPECT_NE(refusal("math.so").find("named by a path with a slash, as ./math.so"), std::string::npos);
  EXPECT_NE(refusal(path_of("absent")).find("cannot be opened"), std::string::npos);
  EXPECT_NE(refusal("/dev/null").find("is no file"), std::string::npos);
  EXPECT_NE(refusal(path_of("none")).find("exports no wirecall_module"), std::string::npos);
  EXPECT_NE(refusal(path_of("newer")).find("take a newer wirecall"), std::string::npos);
  EXPECT_NE(refusal(path_of("fails")).find("rpc.add"), std::string::npos);
}

TEST(Module, OneThatOthersMayWriteIsRefused) {
  std::string folder = "/tmp/wirecall-module-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/math.so";
  std::ofstream{path, std::ios::binary} << std::ifstream{path_of("math"), std::ios::binary}.rdbuf();
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_NE(refusal(path).find("may be written by others: chmod go-w"), std::string::npos);
  std::remove(path.c_str());
  ::rmdir(folder.c_str());
}

TEST(Module, AServerServesItsMethods) {
  Server server;
  load_module(server, path_of("math"));
  EXPECT_THROW(load_module(server, path_of("math")), std::invalid_argument);
  server.method("mul", [](int a, int b) { return a * b; }, {"a", "b"});
  const std::string uri = server.listen("inproc://module-test").uri();
  std::jthread running{[&server] { server.run(OnSignals::leave); }};
  {
    Client client{uri};
    EXPECT_EQ(client.call<int>("math.add", 2, 3) * client.call<int>("mul", 2, 3), 30);
  }
  server.stop();
}

}  // namespace
}  // namespace wirecall
