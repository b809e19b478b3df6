// A session behind lengths, on which messages in MessagePack, CBOR, Protocol Buffers and JSON come: what the peer gets
// must not depend on how its bytes were cut up on the way, and each answer is one message. The first bytes of an input
// choose the cuts; then come messages, each behind its length in one byte.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "connection/message_connection.hpp"
#include "framing/length_prefix.hpp"
#include "fuzz/binary_maker.hpp"
#include "fuzz/encodings.hpp"
#include "fuzz/peer.hpp"
#include "fuzz/texts.hpp"
#include "message/message_codec.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

#define FUZZ_MAKER fuzz::MsgpackMaker
#define FUZZ_FRESH frame
#include "fuzz/mutator.hpp"

namespace {

// Small enough to be met by small inputs.
const wirecall::Limits kLimits{.max_message_size = 200, .batch = 3, .depth = 8, .soft_output = 2000};

wirecall::Registry make_registry() {
  wirecall::Registry registry;
  registry.method("subtract", [](int a, int b) { return std::int64_t{a} - b; }, {"a", "b"});
  registry.method("echo", [](wirecall::Value value) { return value; });
  registry.method("raw", [](wirecall::Raw value) { return value; });
  registry.method("bytes", [](std::vector<std::byte> data) { return data; });
  return registry;
}

std::string with_lengths(std::string_view input) {
  std::string out;
  while (!input.empty()) {
    const std::size_t size = std::min<std::size_t>(static_cast<unsigned char>(input[0]), input.size() - 1);
    out.append(3, '\0');
    out += static_cast<char>(size);
    out += input.substr(1, size);
    input.remove_prefix(1 + size);
  }
  return out;
}

// Each answer is one whole value.
void check_frames(std::string_view output, std::string_view input) {
  while (output.size() >= 4) {
    std::size_t size = 0;
    for (const char c : output.substr(0, 4)) size = size << 8 | static_cast<unsigned char>(c);
    fuzz::require(size != 0 && size <= output.size() - 4, "a length that is not that of an answer", input);
    const std::string_view answer = output.substr(4, size);
    const wirecall::Encoding encoding = wirecall::message::encoding_of(answer.front());
    fuzz::require(fuzz::is_whole_in(encoding, answer), "an answer that is of no encoding", input);
    output.remove_prefix(4 + size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const wirecall::Registry registry = make_registry();
  const std::string_view all = fuzz::text_of(data, size);
  std::uint64_t seed = 0;
  for (std::size_t i = 0; i < 2 && i < all.size(); ++i) seed = seed << 8 | static_cast<unsigned char>(all[i]);
  const std::string input = with_lengths(all.substr(std::min<std::size_t>(2, all.size())));

  const auto make = [](wirecall::net::Host& host, std::unique_ptr<wirecall::transport::ByteStream> stream) {
    return std::make_unique<wirecall::net::MessageConnection>(
        host, std::move(stream), std::make_unique<wirecall::framing::LengthPrefix>(kLimits));
  };
  fuzz::Peer whole{registry, kLimits, make};
  if (!input.empty()) whole.send(input);
  const std::string expected = whole.finish(input);
  check_frames(expected, all);

  fuzz::Peer pieces{registry, kLimits, make};
  fuzz::send_in_pieces(pieces, input, fuzz::Random{seed});
  const std::string got = pieces.finish(input);
  fuzz::require(got == expected, "the answers depend on how the bytes were cut", all);
  return 0;
}
