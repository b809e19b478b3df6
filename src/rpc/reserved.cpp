#include "rpc/reserved.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "message/own_error.hpp"
#include "rpc/terms.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::rpc {
namespace {

// ---- params, of which there are too few kinds here for the typed edge ----

// A value as it was sent.
struct Sent {
  std::string_view text;
  ValueKind kind = ValueKind::null;
};

Sent take(Reader& reader) {
  const ValueKind kind = reader.kind();
  return {reader.skip(), kind};
}

// Refuses the value at which the reader stands, or what it has failed at; `place` is a name or position.
template <class Place>
[[noreturn]] void throw_failure(Reader& reader, Place place) {
  static_cast<void>(reader.failed_at(place));
  Error error = decode_error(reader);
  reader.clear_failure();
  throw error;
}
template <class Place>
[[noreturn]] void refuse_here(Reader& reader, Place place, std::string_view expected) {
  static_cast<void>(reader.fail(expected));
  throw_failure(reader, place);
}
// Refuses what was given for `name`, or that nothing was.
[[noreturn]] void refuse(Reader& reader, std::string_view name, const std::optional<Sent>& sent,
                         std::string_view expected) {
  if (sent) {
    reader.reset(sent->text);
    refuse_here(reader, name, expected);
  }
  static_cast<void>(reader.fail_missing(expected));
  throw_failure(reader, name);
}

// The params, by name or by position in the order of `names`. Throws Error -32602.
class Params {
 public:
  Params(const ReservedCall& call, std::span<const std::string_view> names) : reader_(*call.workspace.readers.reader) {
    if (!call.message.has(Member::params)) return;
    reader_.reset(call.message[Member::params]);
    if (reader_.kind() == ValueKind::array) {
      static_cast<void>(reader_.begin_array());
      for (std::size_t position = 0; reader_.next_element(); ++position) {
        if (position >= names.size()) refuse_here(reader_, position, "nothing");
        given_[position] = take(reader_);
      }
    } else if (reader_.kind() == ValueKind::object) {
      static_cast<void>(reader_.begin_object());
      for (std::string_view name; reader_.next_member(name);) {
        const auto found = std::ranges::find(names, name);
        if (found == names.end()) {
          static_cast<void>(reader_.skip());  // peers may be newer
          continue;
        }
        std::optional<Sent>& given = given_[static_cast<std::size_t>(found - names.begin())];
        if (given) refuse_here(reader_, *found, "one value");
        given = take(reader_);
      }
    }
  }

  [[nodiscard]] const std::optional<Sent>& find(std::size_t index) const noexcept { return given_[index]; }
  [[noreturn]] void refuse(std::string_view name, const std::optional<Sent>& sent, std::string_view expected) const {
    rpc::refuse(reader_, name, sent, expected);
  }

 private:
  static constexpr std::size_t kNamesMax = 3;

  Reader& reader_;
  std::array<std::optional<Sent>, kNamesMax> given_;
};

// Of ids, `sent` is one: what a request can have.
void require_id(Reader& reader, const std::optional<Sent>& sent) {
  const bool is_id =
      sent && (sent->kind == ValueKind::string || sent->kind == ValueKind::number || sent->kind == ValueKind::null);
  if (!is_id) refuse(reader, "id", sent, "string, number or null");
}

template <class Use>
void each_element(Reader& reader, std::string_view array, const Use& use) {
  reader.reset(array);
  static_cast<void>(reader.begin_array());
  while (reader.next_element()) use(take(reader));
}

// ---- the methods; each returns its result as JSON text, or throws what it is refused with ----

std::size_t cancel_each(const ReservedCall& call, std::string_view ids) {
  // A message may hold millions of ids, and so none of them is kept: they are read once to see that all can be
  // cancelled, and once more to do it.
  Reader& reader = *call.workspace.readers.reader;
  bool any = false;
  each_element(reader, ids, [&](const Sent& id) {
    require_id(reader, id);
    any = true;
  });
  if (!any) require_id(reader, {});
  if (call.pending == nullptr) return 0;
  std::size_t count = 0;
  // Handlers that are asked to stop may use the reader of all.
  const std::unique_ptr<Reader> own = call.workspace.codec->reader();
  each_element(*own, ids, [&](const Sent& id) { count += call.pending->cancel(id.text); });
  return count;
}

std::string cancel(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 1> kNames{"id"};
  Reader& reader = *call.workspace.readers.reader;
  if (call.message.has(Member::params)) {
    const std::string_view params = call.message[Member::params];
    reader.reset(params);
    if (reader.kind() == ValueKind::array) return std::to_string(cancel_each(call, params));
  }
  const std::optional<Sent> id = Params{call, kNames}.find(0);
  require_id(reader, id);
  return std::to_string(call.pending != nullptr ? call.pending->cancel(id->text) : 0);
}

std::string credit(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 2> kNames{"id", "n"};
  const Params params{call, kNames};
  const std::optional<Sent> id = params.find(0);
  const std::optional<Sent> more = params.find(1);
  require_id(*call.workspace.readers.reader, id);
  const std::optional<std::uint64_t> count = more ? read_count(call.workspace, more->text) : std::nullopt;
  if (count.value_or(0) == 0) params.refuse("n", more, "integer from 1");
  return call.pending != nullptr && call.pending->grant(id->text, *count) ? "1" : "0";
}

std::string ping(const ReservedCall& call) {
  static_cast<void>(Params{call, {}});
  return "\"pong\"";
}

struct HelloLimits {
  std::size_t max_message_size;
  std::size_t batch;
  std::uint32_t depth;
  std::size_t in_flight;
  std::uint32_t hops;
  std::uint32_t call_timeout_ms;
};

struct Hello {
  std::string_view server;
  std::string_view version;
  std::optional<std::string> name;
  HelloLimits limits;
  std::uint32_t keepalive;
  std::vector<std::string_view> features;
};

std::string hello(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 3> kNames{"name", "token", "resume"};
  const Params params{call, kNames};
  std::optional<std::string> name;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::optional<Sent> sent = params.find(i);
    if (!sent || sent->kind == ValueKind::null) continue;
    if (sent->kind != ValueKind::string) params.refuse(kNames[i], sent, "string");
    if (i == 0) name = from_json<std::string>(sent->text).value();
  }
  // There is one principal, and every token is its own; but nobody was ever given a session.
  if (const auto resume = params.find(2); resume && resume->kind != ValueKind::null) {
    throw message::make({.code = ErrorCode::unauthenticated, .reason = "there is no such session", .delivered = "no"});
  }
  call.greeted = true;
  const Limits& limits = call.limits;
  return to_json(Hello{.server = "wirecall",
                       .version = WIRECALL_VERSION,
                       .name = std::move(name),
                       .limits = {.max_message_size = limits.max_message_size,
                                  .batch = limits.batch,
                                  .depth = limits.depth,
                                  .in_flight = limits.in_flight,
                                  .hops = limits.hops,
                                  .call_timeout_ms = limits.call_timeout_ms},
                       .keepalive = limits.keepalive_timeout_ms,
                       .features = {"cancel", "timeout_ms", "hops", "stream", "progress"}});
}

enum class Needs : std::uint8_t { nothing, connection };

struct Method {
  std::string_view name;
  std::string (*serve)(const ReservedCall&);  // null: there is no such method yet
  Needs needs = Needs::nothing;
};
constexpr std::array kMethods{Method{"rpc.cancel", &cancel},
                              Method{"$/cancelRequest", &cancel},
                              Method{"rpc.credit", &credit},
                              Method{"rpc.ping", &ping},
                              Method{"keepAlive", &ping},
                              Method{"rpc.hello", &hello, Needs::connection},
                              Method{"rpc.register", nullptr, Needs::connection},
                              Method{"rpc.unregister", nullptr, Needs::connection},
                              Method{"rpc.subscribe", nullptr, Needs::connection},
                              Method{"rpc.unsubscribe", nullptr, Needs::connection}};

// Most names that are looked for here are another's, misspelt.
constexpr bool may_be_ours(std::string_view name) {
  return !name.empty() && (name.front() == 'r' || name.front() == '$' || name.front() == 'k');
}
static_assert(std::ranges::all_of(kMethods, &may_be_ours, &Method::name));

}  // namespace

bool serve_reserved(const ReservedCall& call) {
  if (!may_be_ours(call.name)) return false;
  const auto found = std::ranges::find(kMethods, call.name, &Method::name);
  if (found == kMethods.end()) return false;
  const bool lacks_connection = found->needs == Needs::connection && !call.outlet.connected();
  if (found->serve == nullptr && !lacks_connection) return false;
  const bool answers = call.message.kind != MessageKind::notification;
  const auto refuse = [&call](const Error& error) {
    call.workspace.stats.count_error(error.code());
    call.reply.error(error, call.message.id());
  };
  try {
    if (lacks_connection) {
      throw Error{ErrorCode::invalid_request, std::string{message_of(ErrorCode::invalid_request)},
                  R"({"reason":"needs_connection"})"};
    }
    const std::string result = found->serve(call);
    if (!answers) return true;
    call.reply.begin().append(result);
    if (!call.reply.end(call.message.id())) refuse(reply_too_large());
  } catch (const Error& error) {
    if (answers) refuse(error);
  }
  return true;
}

}  // namespace wirecall::rpc
