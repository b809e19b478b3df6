// Values for a client at a broker (docs/client.md, "At a broker"): ProvideOptions says how the broker calls a method
// that the client provides, PublishOptions how it treats a published event, and ProviderOutcome is one provider's
// answer to Client::call_all.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/schema.hpp"

namespace wirecall {

/// How a broker calls a method that a client provides. The broker decides about members that are left empty.
struct ProvideOptions {
  /// The most calls that the broker sends to this client at once, at least 1; further calls wait at the broker.
  /// Default: no limit; of a batched function as many as two batches, or one more than run at once, have.
  std::optional<std::uint32_t> concurrency = {};
  /// The most calls that wait at the broker for this client; a further call is answered -32005. Default: 1000.
  std::optional<std::uint32_t> queue = {};
  /// How the broker chooses among several providers: "least_inflight", "round_robin", "hash:<param>", "exclusive",
  /// "random", "first" or "last". The first provider of a method fixes its policy, "least_inflight" by default; a later
  /// one names the same policy or none, else its registration is refused (-32007).
  std::string policy = {};
  /// When this client is lost, the broker sends a call that it may have served once more, to another provider.
  bool idempotent = false;
  /// The method changes nothing, so that it may be called by HTTP GET.
  bool safe = false;
  std::string summary = {};  ///< one sentence of documentation, for listings
  /// The parameters, as for Registry::method.
  std::vector<Param> params = {};
  /// It takes packed params, too (packing.hpp): &packing(function).
  const detail::Packing* packed = nullptr;
};

struct PublishOptions {
  /// The broker keeps the value for clients that subscribe later with SubscribeOptions::last.
  bool retain = false;
};

/// What a broker has answered that keeps an event in its durable store (docs/durable.md).
struct Published {
  std::uint64_t seq = 0;            ///< by which the store knows the event
  std::optional<bool> duplicate{};  ///< true: it was kept before, by the same msg_id
};

/// One provider's answer.
template <class T = void>
struct ProviderOutcome {
  std::string client;  ///< the provider's name; empty where it has none, or the broker does not tell
  std::expected<T, Error> outcome;
};

namespace detail {

/// The error object that the reader reads next; where that is not an error object, an Error that says so.
[[nodiscard]] Error take_error(Reader& reader);

}  // namespace detail

/// Decodes {"result" or "error", "client"}. A result that is not a T makes this provider's outcome an Error -32603; it
/// does not fail the other outcomes.
template <class T>
struct Adapt<ProviderOutcome<T>> {
  static bool decode(Reader& reader, ProviderOutcome<T>& out) {
    if (!reader.begin_object()) return false;
    bool ended = false;
    for (std::string_view name; reader.next_member(name);) {
      if (name == "result") {
        read_result(reader, out);
        ended = true;
      } else if (name == "error") {
        out.outcome = std::unexpected{detail::take_error(reader)};
        ended = true;
      } else if (name == "client" && reader.kind() == ValueKind::string) {
        if (!wirecall::decode(reader, out.client)) return false;
      } else {
        reader.skip();
      }
    }
    return ended || reader.fail_missing("result or error");
  }
  static constexpr std::string_view name = "a provider's outcome";

 private:
  static void read_result(Reader& reader, ProviderOutcome<T>& out) {
    if constexpr (std::is_void_v<T>) {
      reader.skip();
    } else {
      const char* const mark = reader.mark();
      out.outcome.emplace();
      if (wirecall::decode(reader, *out.outcome)) return;
      const Error why = decode_error(reader);
      reader.clear_failure();
      reader.rewind(mark);
      reader.skip();
      out.outcome = std::unexpected{
          Error{ErrorCode::internal_error, "the result is not what was asked for: " + type_name<T>(), why.data()}};
    }
  }
};

}  // namespace wirecall
