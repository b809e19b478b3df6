// A function that is called once for many calls: what callers see is a method like any other (docs/batching.md).
#include <chrono>
#include <cstdio>
#include <expected>
#include <string>
#include <thread>
#include <vector>

#include "wirecall/wirecall.hpp"

using namespace std::chrono_literals;

// A model that takes as long for eight texts as for one.
std::vector<std::expected<std::size_t, wirecall::Error>> measure(const std::vector<std::string>& texts) {
  std::printf("a batch of %zu\n", texts.size());
  std::vector<std::expected<std::size_t, wirecall::Error>> lengths;
  for (const std::string& text : texts) {
    if (text.empty()) {
      lengths.emplace_back(std::unexpected(wirecall::Error{1, "there is nothing to measure"}));
    } else {
      lengths.emplace_back(text.size());
    }
  }
  return lengths;
}

// The same, where each call is answered by a stream of its own.
wirecall::Stream<std::string> letters(std::string word) {
  for (const char letter : word) co_yield std::string(1, letter);
}
std::vector<wirecall::Stream<std::string>> spell(const std::vector<std::string>& words) {
  std::vector<wirecall::Stream<std::string>> streams;
  for (const std::string& word : words) streams.push_back(letters(word));
  return streams;
}

int main() {
  wirecall::Server server;
  server.batch_method("measure", measure, {.size = 3, .wait = 10s}, {"text"});
  server.batch_method("spell", spell, {.size = 8}, {"word"});
  const wirecall::Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::jthread serving{[&server] { server.run(wirecall::OnSignals::leave); }};

  bool right = false;
  {
    wirecall::Client client{endpoint.uri()};
    // Three calls fill a batch; each has an outcome of its own.
    const auto [one, none, five] = client.batch()
                                       .call<std::size_t>("measure", "a")
                                       .call<std::size_t>("measure", "")
                                       .call<std::size_t>("measure", "abcde")
                                       .send();
    right = one == 1U && !none.has_value() && none.error().code() == 1 && five == 5U;

    std::string spelt;
    for (const std::string& letter : client.stream<std::string>("spell", "abc")) spelt += letter + " ";
    right = right && spelt == "a b c ";
  }
  server.stop();
  return right ? 0 : 1;
}
