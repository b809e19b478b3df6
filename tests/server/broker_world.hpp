// A client on a simulated system (client_world.hpp) whose server accepts registrations and subscriptions as a broker
// does: the test sets the answer to each method.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/client/world.hpp"
#include "wirecall/log.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {

struct BrokerWorld : World {
  explicit BrokerWorld(ClientOptions options = {}, std::size_t endpoints = 1)
      : World{1, logging(*this, std::move(options)), endpoints} {
    serve = [this] {
      for (std::string request = line(); !request.empty(); request = line()) {
        lines.push_back(request);
        reply(request);
      }
    };
  }
  static ClientOptions logging(BrokerWorld& world, ClientOptions options) {
    options.log = [&world](const LogRecord& record) {
      world.log.emplace_back(format_log(LogFormat::human, record).substr(25));  // without its time
    };
    return options;
  }
  // The value of a message's member as JSON text; empty without one.
  static std::string member(const std::string& message, std::string_view name) {
    const Value value = from_json<Value>(message).value();
    const Value* found = value.find(name);
    return found == nullptr ? std::string{} : to_json(*found);
  }
  void reply(const std::string& request) {
    const std::string id = member(request, "id");
    if (id.empty() || member(request, "method").empty()) return;
    const auto found = answers.find(from_json<std::string>(member(request, "method")).value());
    std::string answer = found == answers.end() ? R"("result":1)" : found->second;
    if (answer_to) answer = answer_to(request);
    if (!answer.empty()) send(R"({"jsonrpc":"2.0",)" + answer + R"(,"id":)" + id + "}");
  }
  void send(const std::string& message) { peers.back()->send(message + "\n"); }
  void pass(std::chrono::milliseconds time) {
    const auto pause = [&]() -> Task<void> { co_await sleep_for(client->scheduler(), time); };
    client->run(pause());
  }
  // The methods of the requests received, or "response".
  std::vector<std::string> methods() {
    std::vector<std::string> names;
    for (const std::string& one : std::exchange(lines, {})) {
      const std::string name = member(one, "method");
      names.push_back(name.empty() ? "response" : from_json<std::string>(name).value());
    }
    return names;
  }

  std::map<std::string, std::string> answers;  // by method: `"result":…` or `"error":…`; empty for no answer
  std::function<std::string(const std::string&)> answer_to;  // replaces that
  std::vector<std::string> lines;
  std::vector<std::string> log;
};

}  // namespace wirecall::net
