#include "rpc/reserved.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
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

enum class Beyond : std::uint8_t {
  refused,
  of_the_last,  // by position: values of the last name again
};

// The params in the order of `names`, empty where none was given. Throws Error -32602.
class Params {
 public:
  Params(const ReservedCall& call, std::span<const std::string_view> names, Beyond beyond = Beyond::refused)
      : reader_(*call.workspace.reader) {
    if (!call.message.has(Member::params)) return;
    reader_.reset(call.message[Member::params]);
    if (reader_.kind() == ValueKind::array) {
      static_cast<void>(reader_.begin_array());
      for (std::size_t position = 0; reader_.next_element(); ++position) {
        if (position >= names.size() && beyond == Beyond::refused) refuse_here(position, "nothing");
        take(std::min(position, names.size() - 1));
      }
    } else if (reader_.kind() == ValueKind::object) {
      static_cast<void>(reader_.begin_object());
      for (std::string_view name; reader_.next_member(name);) {
        const auto found = std::ranges::find(names, name);
        const auto index = static_cast<std::size_t>(found - names.begin());
        if (found == names.end()) {
          static_cast<void>(reader_.skip());  // peers may be newer
        } else if (find(index)) {
          refuse_here(*found, "one value");
        } else {
          take(index);
        }
      }
    }
  }

  [[nodiscard]] const std::vector<std::pair<std::size_t, Sent>>& all() const noexcept { return given_; }
  [[nodiscard]] std::optional<Sent> find(std::size_t index) const noexcept {
    for (const auto& [at, sent] : given_) {
      if (at == index) return sent;
    }
    return {};
  }
  /// Refuses what was given for `name`, or that nothing was.
  [[noreturn]] void refuse(std::string_view name, const std::optional<Sent>& sent, std::string_view expected) const {
    if (sent) {
      reader_.reset(sent->text);
      refuse_here(name, expected);
    }
    static_cast<void>(reader_.fail_missing(expected));
    throw_failure(name);
  }

 private:
  // Refuses the value at which the reader stands; `place` is a name or position.
  template <class Place>
  [[noreturn]] void refuse_here(Place place, std::string_view expected) const {
    static_cast<void>(reader_.fail(expected));
    throw_failure(place);
  }
  template <class Place>
  [[noreturn]] void throw_failure(Place place) const {
    static_cast<void>(reader_.failed_at(place));
    Error error = decode_error(reader_);
    reader_.clear_failure();
    throw error;
  }
  void take(std::size_t index) {
    const ValueKind kind = reader_.kind();
    given_.push_back({index, {reader_.skip(), kind}});
  }

  Reader& reader_;
  std::vector<std::pair<std::size_t, Sent>> given_;
};

constexpr std::string_view kIdTypes = "string, number or null";

// Of ids, `sent` is one: what a request can have.
void require_id(const Params& params, const std::optional<Sent>& sent) {
  const bool is_id =
      sent && (sent->kind == ValueKind::string || sent->kind == ValueKind::number || sent->kind == ValueKind::null);
  if (!is_id) params.refuse("id", sent, kIdTypes);
}

// ---- the methods; each returns its result as JSON text, or throws what it is refused with ----

std::string cancel(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 1> kNames{"id"};
  const Params params{call, kNames, Beyond::of_the_last};
  if (params.all().empty()) params.refuse("id", {}, kIdTypes);
  for (const auto& [index, id] : params.all()) require_id(params, id);
  std::size_t count = 0;
  if (call.pending != nullptr) {
    for (const auto& [index, id] : params.all()) count += call.pending->cancel(id.text);
  }
  return std::to_string(count);
}

std::string credit(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 2> kNames{"id", "n"};
  const Params params{call, kNames};
  const std::optional<Sent> id = params.find(0);
  const std::optional<Sent> more = params.find(1);
  require_id(params, id);
  const std::optional<std::uint64_t> count = more ? read_count(call.workspace, more->text) : std::nullopt;
  if (count.value_or(0) == 0) params.refuse("n", more, "integer from 1");
  return std::to_string(call.pending != nullptr ? call.pending->grant(id->text, *count) : 0);
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
  if (!call.outlet.connected())
    throw Error{ErrorCode::invalid_request, std::string{message_of(ErrorCode::invalid_request)},
                R"({"reason":"needs_connection"})"};
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

struct Method {
  std::string_view name;
  std::string (*serve)(const ReservedCall&);
};
constexpr std::array kMethods{Method{"rpc.cancel", &cancel}, Method{"$/cancelRequest", &cancel},
                              Method{"rpc.credit", &credit}, Method{"rpc.ping", &ping},
                              Method{"keepAlive", &ping},    Method{"rpc.hello", &hello}};

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
  const bool answers = call.message.kind != MessageKind::notification;
  const auto refuse = [&call](const Error& error) {
    call.workspace.stats.count_error(error.code());
    call.reply.error(error, call.message.id());
  };
  try {
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
