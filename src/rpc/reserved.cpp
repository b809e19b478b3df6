#include "rpc/reserved.hpp"

#include "message/own_error.hpp"
#include "rpc/authentication.hpp"
#include "rpc/broker.hpp"
#include "rpc/call_options.hpp"
#include "rpc/listed_methods.hpp"
#include "rpc/openrpc.hpp"
#include "rpc/reserved_params.hpp"

namespace wirecall::rpc {
namespace {

// Of ids, `sent` is one: what a request can have.
void require_id(Reader& reader, const std::optional<RawValue>& sent) {
  const bool is_id =
      sent && (sent->kind == ValueKind::string || sent->kind == ValueKind::number || sent->kind == ValueKind::null);
  if (!is_id) refuse_param(reader, "id", sent, "string, number or null");
}

template <class Use>
void each_element(Reader& reader, std::string_view array, const Use& use) {
  reader.reset(array);
  static_cast<void>(reader.begin_array());
  while (reader.next_element()) use(take_raw(reader));
}

// Of the share, for each id that is looked for, and for each call that ends.
constexpr std::size_t kStepsOfId = 1;
constexpr std::size_t kStepsOfCancelled = 4;

// ---- the methods; each returns its result as JSON text or its rendering, or throws what it is refused with ----

// Of a connection that has so many calls in flight at most.
Error too_many_ids(std::size_t most) {
  return Error::with_data(
      ErrorCode::invalid_params,
      R"({"reason":"more ids than a connection may have calls in flight","limit":"in_flight","most":)" +
          std::to_string(most) + "}");
}

std::size_t cancel_one(const ReservedCall& call, std::string_view id_json) {
  std::size_t count = call.pending != nullptr ? call.pending->cancel(id_json) : 0;
  if (call.broker != nullptr) count += call.broker->cancel(id_json);
  return count;
}

std::size_t cancel_each(const ReservedCall& call, std::string_view ids) {
  // None of them is kept: they are read once to see that all can be cancelled, and once more to do it.
  Reader& reader = *call.loop_context.codecs.readers.reader;
  std::size_t named = 0;
  each_element(reader, ids, [&](const RawValue& id) {
    if (++named > call.limits.in_flight) throw too_many_ids(call.limits.in_flight);
    require_id(reader, id);
  });
  if (named == 0) require_id(reader, {});
  if (call.pending == nullptr && call.broker == nullptr) return 0;
  std::size_t count = 0;
  // Handlers that are asked to stop may use the reader of all.
  const std::unique_ptr<Reader> own = call.loop_context.codecs.codec.reader();
  each_element(*own, ids, [&](const RawValue& id) { count += cancel_one(call, id.text); });
  call.sink.charge(kStepsOfId * named + kStepsOfCancelled * count);
  return count;
}

std::string cancel(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 1> kNames{"id"};
  Reader& reader = *call.loop_context.codecs.readers.reader;
  if (call.message.has(Member::params)) {
    const std::string_view params = call.message[Member::params];
    reader.reset(params);
    if (reader.kind() == ValueKind::array) return std::to_string(cancel_each(call, params));
  }
  const std::optional<RawValue> id = ReservedParams{call, kNames}.find(0);
  require_id(reader, id);
  return std::to_string(cancel_one(call, id->text));
}

std::string credit(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 2> kNames{"id", "n"};
  const ReservedParams params{call, kNames};
  const std::optional<RawValue> id = params.find(0);
  const std::optional<RawValue> more = params.find(1);
  require_id(*call.loop_context.codecs.readers.reader, id);
  const std::optional<std::uint64_t> count = more ? read_count(call.loop_context, more->text) : std::nullopt;
  if (count.value_or(0) == 0) params.refuse("n", more, "integer from 1");
  const bool granted = (call.pending != nullptr && call.pending->grant(id->text, *count)) ||
                       (call.broker != nullptr && call.broker->grant(id->text, *count));
  return granted ? "1" : "0";
}

// An id as JSON text, as that of a request is kept.
std::string id_text(const ReservedCall& call, const RawValue& id) {
  if (call.message.is_json()) return std::string{id.text};
  Reader& reader = call.reader();
  reader.reset(id.text);
  return reader.json(kIdBytesMax);
}

// An item of the stream that a request brings towards its handler.
std::string item(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 4> kNames{"id", "seq", "value", "end"};
  const ReservedParams params{call, kNames};
  const std::optional<RawValue> id = params.find(0);
  require_id(call.reader(), id);
  const std::string id_json = id_text(call, *id);
  if (call.pending == nullptr) return "0";
  const std::optional<RawValue> value = params.find(2);
  const bool end = params.as_or_nothing<bool>(3).value_or(false);
  const std::optional<std::uint64_t> sequence = params.as_or_nothing<std::uint64_t>(1);
  if (!sequence || value.has_value() == end) {
    const auto why = [] { return std::string{"rpc.item needs a seq, and either a value or the end"}; };
    const Error error = Error::with_data(ErrorCode::invalid_request,
                                         call.loop_context.refusals.data(ErrorCode::invalid_request, {}, why));
    return call.pending->break_input(id_json, error) ? "1" : "0";
  }
  const EncodedText encoded{.text = end ? std::string_view{} : value->text, .encoding = call.message.encoding};
  return call.pending->add_input(id_json, {.sequence = *sequence, .value = encoded}) ? "1" : "0";
}

std::string ping(const ReservedCall& call) {
  static_cast<void>(ReservedParams{call, std::array<std::string_view, 0>{}});
  return "\"pong\"";
}

// A handler may answer with -32601 as well: so a caller that gets it finds out here whether its method was run.
std::string undelivered(const ReservedCall& call) {
  static_cast<void>(ReservedParams{call, std::array<std::string_view, 0>{}});
  return std::to_string(call.load == nullptr ? 0 : std::exchange(call.load->undelivered, std::uint8_t{0}));
}

// The token that hello brings, where one is needed.
void authenticate(const ReservedCall& call, const std::optional<RawValue>& sent) {
  Identity* const identity = call.identity;
  if (identity == nullptr) return;
  const auto refuse = [&](std::string_view reason) {
    identity->principal = nullptr;
    call.loop_context.refusals.log_unauthenticated(
        {.what = call.name, .about = {}, .source = call.sink.peer_source(), .reason = reason});
    throw unauthenticated(call.sink, call.loop_context);
  };
  if (!sent || sent->kind == ValueKind::null) {
    if (identity->principal == nullptr) refuse(fault_of_unknown(call.sink, call.loop_context));
    return;
  }
  const std::string token = from_json<std::string>(sent->text).value();
  const Principal* const principal = call.loop_context.services.authority->find(token);
  if (principal == nullptr) refuse(Refusals::kUnknownToken);
  // One that says it is another than it was is nobody.
  if (identity->principal != nullptr && !same_principal(identity->principal, principal))
    refuse(Refusals::kOtherPrincipal);
  *identity = {
      .authority = call.loop_context.services.authority, .principal = principal, .credential = std::string_view{token}};
  if (call.broker != nullptr) call.broker->identify(principal);
}

std::shared_ptr<Rendering> discover(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 1> kNames{"version"};
  const std::optional<std::string> version = ReservedParams{call, kNames}.as<std::string>(0);
  const LoopContext& loop_context = call.loop_context;
  DocumentOrigin origin{.title = loop_context.services.title};
  std::string own_url;
  if (const std::string_view host = call.sink.http_host(); !host.empty()) {
    own_url = (call.sink.tls_version().empty() ? "http://" : "https://") + std::string{host} + "/rpc";
    origin.urls = {&own_url, 1};
  } else if (loop_context.services.urls != nullptr) {
    origin.urls = *loop_context.services.urls;
  }
  return std::make_shared<OpenRpcDocument>(call.loop_context, call.registry, call.loop_context.services.broker,
                                           version.value_or(std::string{}), call.asker(), origin);
}

// A broker's is another, which knows of those that clients provide.
std::shared_ptr<Rendering> methods(const ReservedCall& call) {
  static_cast<void>(ReservedParams{call, std::array<std::string_view, 0>{}});
  return std::make_shared<MethodList>(call.loop_context, call.registry, call.asker());
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
  std::optional<std::string> session;
  HelloLimits limits;
  std::uint32_t keepalive;
  std::vector<std::string_view> features;
};

std::string hello(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 3> kNames{"name", "token", "resume"};
  const ReservedParams params{call, kNames, Quotes::no};  // one of these is a token, or meant to be
  std::optional<std::string> name;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const std::optional<RawValue> sent = params.find(i);
    if (!sent || sent->kind == ValueKind::null) continue;
    if (sent->kind != ValueKind::string) params.refuse(kNames[i], sent, "string");
    if (i == 0) name = from_json<std::string>(sent->text).value();
  }
  authenticate(call, params.find(1));
  const std::string resume = params.as<std::string>(2).value_or(std::string{});
  std::optional<std::string> session;
  if (call.broker != nullptr) {
    HelloResult result = call.broker->hello(name.value_or(std::string{}), resume);
    name = std::move(result.name);
    session = std::move(result.session);
  } else if (!resume.empty()) {
    throw message::make(ErrorCode::unauthenticated, "there is no such session", "no");
  }
  if (name && name->empty()) name.reset();
  call.greeted = true;
  std::vector<std::string_view> features{"cancel", "timeout_ms", "hops", "stream", "input", "progress"};
  if (call.broker != nullptr) features.emplace_back("broker");
  const Limits& limits = call.limits;
  return to_json(Hello{.server = "wirecall",
                       .version = WIRECALL_VERSION,
                       .name = std::move(name),
                       .session = std::move(session),
                       .limits = {.max_message_size = limits.max_message_size,
                                  .batch = limits.batch,
                                  .depth = limits.depth,
                                  .in_flight = limits.in_flight,
                                  .hops = limits.hops,
                                  .call_timeout_ms = limits.call_timeout_ms},
                       .keepalive = limits.keepalive_timeout_ms,
                       .features = std::move(features)});
}

using Needs = ReservedMethod::Needs;

// A step pays for more bytes of an answer that is there already.
constexpr std::size_t kBytesCopiedInStep = 1024;

constexpr auto kMethods = sorted_by_name(
    std::array{ReservedMethod{"rpc.cancel", &cancel}, ReservedMethod{"$/cancelRequest", &cancel},
               ReservedMethod{"rpc.credit", &credit}, ReservedMethod{"rpc.item", &item, Needs::connection},
               ReservedMethod{"rpc.ping", &ping}, ReservedMethod{"keepAlive", &ping},
               ReservedMethod{.name = "rpc.discover", .serve = nullptr, .render = &discover},
               ReservedMethod{.name = "rpc.methods", .serve = nullptr, .render = &methods},
               ReservedMethod{"rpc.hello", &hello, Needs::connection},
               ReservedMethod{"rpc.undelivered", &undelivered, Needs::connection},
               ReservedMethod{"rpc.register", nullptr, Needs::connection},
               ReservedMethod{"rpc.unregister", nullptr, Needs::connection},
               ReservedMethod{"rpc.subscribe", nullptr, Needs::connection},
               ReservedMethod{"rpc.unsubscribe", nullptr, Needs::connection}});

// Most names that are looked for here are another's, misspelt.
constexpr bool may_be_ours(std::string_view name) {
  return !name.empty() && (name.front() == 'r' || name.front() == '$' || name.front() == 'k');
}
static_assert(std::ranges::all_of(kMethods, &may_be_ours, &ReservedMethod::name));

// False when it is others' turn first. What does not fit the array that it is to stand in is not written to its end,
// and neither is any later one of the same name.
template <class Answer, class Refuse>
bool render(const ReservedCall& call, std::string_view name, const Answer& answer, const Refuse& refuse) {
  if (call.late) {
    refuse(late_answer());
    return true;
  }
  if (!call.reply.is_too_large(name)) {
    const std::size_t bytes_max = call.reply.json_bytes_max();
    if (!call.rendering->advance(call.sink, bytes_max)) return false;
    if (call.rendering->text().size() <= bytes_max) {
      answer(call.rendering->text());
      return true;
    }
    call.reply.set_too_large(name);
  }
  refuse(reply_too_large());
  return true;
}

}  // namespace

std::string receive_input_item(const ReservedCall& call) { return item(call); }

std::span<const ReservedMethod> reserved_methods() noexcept { return kMethods; }

Error late_answer() {
  return message::make(
      {.code = ErrorCode::timeout, .reason = "the time was up before the answer was written", .delivered = "maybe"});
}

Served serve_reserved(const ReservedCall& call) {
  if (!may_be_ours(call.name)) return Served::unknown;
  const ReservedMethod* found = call.broker != nullptr ? call.broker->find_reserved(call.name) : nullptr;
  if (found == nullptr) found = find_by_name(kMethods, call.name);
  if (found == nullptr) return Served::unknown;
  const PeerCapabilities can = call.sink.capabilities();
  const bool lacks_connection =
      (found->needs == Needs::connection && !can.registration) || (found->needs != Needs::nothing && can.datagrams);
  if (found->serve == nullptr && found->render == nullptr && !lacks_connection) return Served::unknown;
  const bool answers = call.message.kind != MessageKind::notification;
  const auto refuse = [&call](const Error& error) {
    call.loop_context.stats.count_error(error.code());
    call.reply.error(error, call.message.id());
  };
  try {
    if (lacks_connection) {
      throw Error::with_data(ErrorCode::invalid_request, R"({"reason":"needs_connection"})");
    }
    const auto answer = [&](std::string_view result) {
      call.sink.charge(result.size() / kBytesCopiedInStep);
      call.reply.begin();
      call.reply.append_json(result);
      if (!call.reply.end(call.message.id())) refuse(reply_too_large());
    };
    if (found->render != nullptr || call.rendering != nullptr) {
      if (call.rendering == nullptr) call.rendering = found->render(call);
      if (answers && !render(call, found->name, answer, refuse)) return Served::continues;
      call.rendering.reset();
    } else {
      const std::string result = found->serve(call);
      std::shared_ptr<Rendering> later = call.broker != nullptr ? call.broker->take_answer() : nullptr;
      if (answers && later != nullptr) {
        call.rendering = std::move(later);
        return Served::continues;
      }
      if (answers) answer(result);
    }
    if (call.broker != nullptr) call.broker->reserved_answered();
  } catch (const Error& error) {
    const bool unknown = call.identity != nullptr && call.identity->principal == nullptr &&
                         error.code() == static_cast<int>(ErrorCode::unauthenticated);
    if (!unknown && call.broker != nullptr)
      call.broker->refused(call.name, {call.message.params(), call.message.encoding}, error);
    if (answers) refuse(error);
    if (unknown) call.sink.close();
  }
  return Served::done;
}

}  // namespace wirecall::rpc
