// A whole session without a socket: what the peer gets must not depend on how its bytes were cut up on the way. The
// first bytes of an input choose the cuts; the rest arrives once whole and once in these pieces.
#include <memory>
#include <string>
#include <utility>

#include "connection/message_connection.hpp"
#include "framing/json_text.hpp"
#include "fuzz/json_maker.hpp"
#include "fuzz/peer.hpp"
#include "fuzz/texts.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

#define FUZZ_FRESH message
#include "fuzz/mutator.hpp"

namespace {

// Small enough to be met by small inputs.
const wirecall::Limits kLimits{.max_message_size = 300, .batch = 3, .depth = 8, .soft_output = 2000};

wirecall::Registry make_registry() {
  wirecall::Registry registry;
  registry.method("subtract", [](int a, int b) { return std::int64_t{a} - b; }, {"a", "b"});
  registry.method("echo", [](wirecall::Value value) { return value; });
  registry.method("raw", [](wirecall::Raw value) { return value; });
  return registry;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const wirecall::Registry registry = make_registry();
  const std::string_view all = fuzz::text_of(data, size);
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < 2 && i < all.size(); ++i) seed = seed << 8 | static_cast<unsigned char>(all[i]);
  const std::string_view input = all.substr(std::min<std::size_t>(2, all.size()));

  static const wirecall::framing::JsonTextSettings settings{kLimits};
  const auto make = [](wirecall::net::Host& host, std::unique_ptr<wirecall::transport::ByteStream> stream) {
    return std::make_unique<wirecall::net::MessageConnection>(host, std::move(stream),
                                                              std::make_unique<wirecall::framing::JsonText>(settings));
  };
  fuzz::Peer whole{registry, kLimits, make};
  if (!input.empty()) whole.send(input);
  const std::string expected = whole.finish(input);

  fuzz::Peer pieces{registry, kLimits, make};
  fuzz::send_in_pieces(pieces, input, fuzz::Random{seed});
  const std::string got = pieces.finish(input);
  if (got != expected) {
    std::fprintf(stderr, "whole:     %s\nin pieces: %s\n", expected.c_str(), got.c_str());
    fuzz::found("the answers depend on how the bytes were cut", all);
  }
  return 0;
}
