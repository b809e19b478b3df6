// A whole connection of HTTP without a socket: every request is answered once and in order, with responses that are
// well formed, and calls with what Registry::handle says to them; and none of it depends on how the bytes were cut up
// on the way, but for 100 Continue, which nobody is sent who has sent the body already. The first two bytes of an input
// choose the cuts; the rest arrives once whole and once in these pieces.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "fuzz/encodings.hpp"
#include "fuzz/http_answers.hpp"
#include "fuzz/http_maker.hpp"
#include "fuzz/peer.hpp"
#include "fuzz/texts.hpp"
#include "http/browser_access.hpp"
#include "http/http_connection.hpp"
#include "message/message_codec.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

#define FUZZ_MAKER fuzz::HttpMaker
#define FUZZ_FRESH requests
#include "fuzz/mutator.hpp"

namespace {

using fuzz::require;

// Small enough to be met by small inputs.
const wirecall::Limits kLimits{
    .max_message_size = 300, .batch = 3, .depth = 8, .in_flight = 3, .soft_output = 3000, .header_bytes = 400};

struct Methods {
  wirecall::Registry registry;
  wirecall::Registry engine;  // the same, for handle

  Methods() {
    for (wirecall::Registry* all : {&registry, &engine}) {
      all->method("subtract", [](int a, int b) { return std::int64_t{a} - b; }, {"a", "b"}).safe();
      all->method("echo", [](wirecall::Value value) { return value; }, {"value"}).safe();
      all->method("raw", [](wirecall::Raw value) { return value; });
      all->method("fail",
                  [](int code, std::string message) -> int { throw wirecall::Error{code, std::move(message)}; });
      // Never done before time has passed: what takes a turn only, and is done between two pieces, would leave room
      // in flight for what follows.
      all->method("later", [](wirecall::Context context, std::uint8_t ms) -> wirecall::Task<int> {
        co_await sleep_for(context, std::chrono::milliseconds{1 + ms});
        co_return ms;
      });
      all->method("count", [](int n) -> wirecall::Stream<int> {
        for (int i = 0; i < n; ++i) co_yield i;
      });
    }
    engine.set_limits(kLimits);
  }
};

struct Heard {
  std::string text;
  std::vector<fuzz::HttpResponse> responses;
  bool has_waited = false;
};

Heard hear(const Methods& methods, std::string_view input, const std::vector<fuzz::HttpRequest>& requests,
           const auto& send) {
  static const wirecall::net::HttpSettings settings = [] {
    wirecall::net::HttpSettings made;
    made.metrics = [](const wirecall::rpc::Asker&) { return std::make_unique<wirecall::rpc::PlainText>("metric 1\n"); };
    made.openrpc = [](wirecall::rpc::LoopContext&, const wirecall::rpc::Asker&, std::span<const std::string>) {
      return std::make_unique<wirecall::rpc::PlainText>("{}");
    };
    return made;
  }();
  fuzz::Peer peer{methods.registry, kLimits,
                  [](wirecall::net::Host& host, std::unique_ptr<wirecall::transport::ByteStream> stream) {
                    return std::make_unique<wirecall::net::HttpConnection>(host, settings, std::move(stream));
                  }};
  send(peer);
  Heard heard;
  heard.text = peer.finish(input);
  heard.has_waited = peer.has_waited();
  std::size_t interim = 0;
  heard.responses = fuzz::read_responses(heard.text, requests, input, interim);
  require(interim <= requests.size(), "more is continued than there is", input);
  return heard;
}

// Each is answered once, unless the connection is closed before.
void check_count(const std::vector<fuzz::HttpRequest>& requests, const std::vector<fuzz::HttpResponse>& responses,
                 std::string_view input) {
  const auto whole = static_cast<std::size_t>(std::ranges::count_if(requests, &fuzz::HttpRequest::is_whole));
  require(responses.size() <= whole + 1, "more is answered than was asked", input);
  const bool closed = !responses.empty() && responses.back().closes;
  require(closed || responses.size() >= whole, "a request has no answer", input);
}

void check_bodies(Methods& methods, const std::vector<fuzz::HttpRequest>& requests,
                  const std::vector<fuzz::HttpResponse>& responses, std::string_view input) {
  for (std::size_t i = 0; i < responses.size(); ++i) {
    const fuzz::HttpResponse& response = responses[i];
    const bool has_body = i >= requests.size() || !requests[i].is_head;
    const auto encoding = wirecall::message::encoding_of_type(response.type);
    const bool binary = encoding && *encoding != wirecall::Encoding::json;
    if (encoding && has_body) require(fuzz::is_whole_in(*encoding, response.body), "a body is not of its type", input);
    if (i >= requests.size() || !requests[i].is_call || !requests[i].is_whole || requests[i].is_timed) continue;
    if (response.status != 200 && response.status != 204) continue;
    // The engine takes and gives JSON; what stands for what is the fuzzer frames' matter.
    const std::string& body = requests[i].body;
    if (binary || (!body.empty() && wirecall::message::encoding_of(body.front()) != wirecall::Encoding::json)) continue;
    const std::string due = methods.engine.handle(body);
    // What waits, or may take too long, has no place in an engine without a loop.
    const auto says = [&](const std::string& text, std::string_view code) {
      return text.find(code) != std::string::npos;
    };
    // The error of a call that waits may be too long for the reply, where its result is not.
    const bool is_cut = says(due, "-32006") && says(body, "later");
    const bool waits = is_cut || says(due, "-32800") || says(due, "-32603") || says(due, "no timers") ||
                       says(due, "-32002") || says(response.body, "-32002") || says(response.body, "-32005");
    if (!waits) require(response.body == due, "a call is not answered as by Registry::handle", input);
  }
}

bool same(const fuzz::HttpResponse& a, const fuzz::HttpResponse& b) {
  return a.status == b.status && a.closes == b.closes && a.type == b.type && a.body == b.body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Methods methods;
  const std::string_view all = fuzz::text_of(data, size);
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < 2 && i < all.size(); ++i) seed = seed << 8 | static_cast<unsigned char>(all[i]);
  const std::string_view input = all.substr(std::min<std::size_t>(2, all.size()));
  const std::vector<fuzz::HttpRequest> requests = fuzz::read_requests(input, kLimits.header_bytes);

  const Heard whole = hear(methods, all, requests, [&](fuzz::Peer& peer) {
    if (!input.empty()) peer.send(input);
  });
  check_count(requests, whole.responses, all);
  check_bodies(methods, requests, whole.responses, all);

  const Heard pieces =
      hear(methods, all, requests, [&](fuzz::Peer& peer) { fuzz::send_in_pieces(peer, input, fuzz::Random{seed}); });
  check_count(requests, pieces.responses, all);
  if (whole.has_waited || pieces.has_waited) return 0;
  if (!std::ranges::equal(whole.responses, pieces.responses, same)) {
    std::fprintf(stderr, "whole:     %s\nin pieces: %s\n", whole.text.c_str(), pieces.text.c_str());
    fuzz::found("the answers depend on how the bytes were cut", all);
  }
  return 0;
}
