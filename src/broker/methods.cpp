// See methods.hpp.
#include "broker/methods.hpp"

#include "base/dotted_name.hpp"
#include "broker/durable_answers.hpp"
#include "broker/router.hpp"
#include "message/own_error.hpp"
#include "rpc/reserved_params.hpp"

namespace wirecall::broker {
namespace {

using rpc::RawValue;
using rpc::ReservedCall;
using rpc::ReservedMethod;
using rpc::ReservedParams;
using rpc::take_raw;

// The caller, as the broker knows it.
Peer& peer_of(const ReservedCall& call) { return static_cast<Peer&>(*call.broker); }

void require_no_params(const ReservedCall& call) {
  static_cast<void>(ReservedParams{call, std::array<std::string_view, 0>{}});
}

// ---- rpc.register ----

// What one name costs.
constexpr std::size_t kRegistrationSteps = 4;

constexpr std::array<std::string_view, 12> kRegisterNames{"method", "params",      "result",       "summary",
                                                          "policy", "concurrency", "queue",        "idempotent",
                                                          "safe",   "methods",     "subscription", "input"};
constexpr std::size_t kMethodsAt = 9;
constexpr std::size_t kSubscriptionAt = 10;
constexpr std::size_t kInputAt = 11;
constexpr std::string_view kNameExpected =
    "a name of 1 to 255 bytes without empty words, white space, * and >; not one of rpc. or $/";
constexpr std::string_view kPolicies = "least_inflight, round_robin, hash:<param>, exclusive, random, first or last";

// What describes a method is kept as long as the method is.
constexpr std::size_t kDescriptionBytesMax = 64 * 1024;

bool is_schema(const RawValue& sent) { return sent.kind == ValueKind::object || sent.kind == ValueKind::boolean; }

bool is_array_of_objects(const RawValue& sent, Reader& reader) {
  if (sent.kind != ValueKind::array) return false;
  reader.reset(sent.text);
  static_cast<void>(reader.begin_array());
  while (reader.next_element()) {
    if (take_raw(reader).kind != ValueKind::object) return false;
  }
  return true;
}

// New work is refused by a server that is about to end.
void require_open(const Router& router) {
  if (!router.is_draining() && !router.is_replaced()) return;
  throw message::make(ErrorCode::draining, "the server is shutting down", "no");
}

// The same of events, which the process that has taken over is told of.
void require_events(const ReservedCall& call) {
  if (!peer_of(call).router().is_linked_to_successor()) require_open(peer_of(call).router());
}

// How a method is declared that subscribes.
struct Declared {
  std::string unsubscribe;
  std::string notification;
};

const RawValue* described(const ReservedParams<12>& params, std::size_t index) {
  const RawValue* const sent = params.value(index);
  if (sent != nullptr && sent->text.size() > kDescriptionBytesMax)
    params.refuse(kRegisterNames[index], params.find(index), "at most 65536 bytes");
  return sent;
}

// `params` are those of the call, or of one of its `methods`.
Registration read_one(const ReservedParams<12>& params, Reader& reader) {
  Registration registration;
  const auto name = params.as<std::string>(0);
  if (!name) params.refuse("method", params.find(0), "string");
  if (!is_name_or_prefix(*name) || is_reserved(*name)) params.refuse("method", params.find(0), kNameExpected);
  registration.name = *name;
  if (const RawValue* schema = described(params, 1)) {
    if (!is_schema(*schema) && !is_array_of_objects(*schema, reader))
      params.refuse("params", params.find(1), "JSON Schema, or array of objects with name and schema");
    registration.description.params_schema = schema->text;
  }
  if (const RawValue* schema = described(params, 2)) {
    if (!is_schema(*schema)) params.refuse("result", params.find(2), "JSON Schema, or object with name and schema");
    registration.description.result_schema = schema->text;
  }
  if (const RawValue* schema = described(params, kInputAt)) {
    if (!is_schema(*schema)) params.refuse("input", params.find(kInputAt), "JSON Schema");
    registration.description.input_schema = schema->text;
  }
  if (described(params, 3) != nullptr) registration.description.summary = params.as<std::string>(3).value();
  if (const auto policy = params.as<std::string>(4)) {
    registration.policy_given = true;
    const auto known = std::ranges::find(kPolicyNames, std::string_view{*policy}, &PolicyName::name);
    if (known != std::end(kPolicyNames)) {
      registration.policy = known->policy;
    } else if (policy->starts_with("hash:") && policy->size() > 5) {
      registration.policy = Policy::hash;
      registration.hash_param = policy->substr(5);
    } else {
      params.refuse("policy", params.find(4), kPolicies);
    }
  }
  if (const auto concurrency = params.as<std::uint32_t>(5)) {
    if (*concurrency == 0 || *concurrency == ProviderOptions::kUnlimited)
      params.refuse("concurrency", params.find(5), "integer from 1 to 4294967294");
    registration.options.concurrency = *concurrency;
  }
  registration.options.queue = params.as<std::uint32_t>(6).value_or(ProviderOptions::kQueueDefault);
  registration.options.idempotent = params.as<bool>(7).value_or(false);
  registration.description.safe = params.as<bool>(8).value_or(false);
  if (auto declared = params.as<Declared>(kSubscriptionAt)) {
    const auto valid = [](std::string_view one) { return is_name(one) && !is_reserved(one); };
    if (!valid(declared->unsubscribe) || !valid(declared->notification) || !valid(registration.name) ||
        declared->unsubscribe == registration.name) {
      params.refuse("subscription", params.find(kSubscriptionAt),
                    R"({"unsubscribe", "notification"}: names of methods, of a method that is no prefix)");
    }
    registration.description.subscription = {.subscribe = registration.name,
                                             .unsubscribe = std::move(declared->unsubscribe),
                                             .notification = std::move(declared->notification)};
  }
  return registration;
}

// What is wrong with one of several, and which.
Error within_methods(const Error& error, std::size_t index) {
  constexpr std::string_view kLoc = R"({"loc":[)";
  if (!error.data().starts_with(kLoc)) return error;
  const std::string location = R"("methods",)" + std::to_string(index) + ",";
  return {error.code(), error.message(), std::string{kLoc} + location + error.data().substr(kLoc.size())};
}

std::vector<Registration> read_all(const ReservedParams<12>& params, const BrokerContext& context) {
  Reader& scratch = *context.loop.codecs.readers.reader;
  std::vector<Registration> registrations;
  if (const RawValue* methods = params.value(kMethodsAt)) {
    if (methods->kind != ValueKind::array) params.refuse("methods", params.find(kMethodsAt), "array");
    // One after the other is read as if it were a call's params.
    const std::unique_ptr<Reader> reader = context.loop.codecs.codec.reader();
    reader->reset(methods->text);
    static_cast<void>(reader->begin_array());
    while (reader->next_element()) {
      if (registrations.size() == context.limits.methods) throw too_many_methods();
      if (reader->kind() != ValueKind::object)
        params.refuse("methods", params.find(kMethodsAt), R"(array of objects, as {"method":"add"})");
      const RawValue one = take_raw(*reader);
      try {
        registrations.push_back(read_one({scratch, one.text, kRegisterNames}, scratch));
      } catch (const Error& error) {
        throw within_methods(error, registrations.size());
      }
    }
  } else {
    registrations.push_back(read_one(params, scratch));
  }
  return registrations;
}

std::string register_methods(const ReservedCall& call) {
  Peer& peer = peer_of(call);
  return std::to_string(add_registrations(peer, read_all({call, kRegisterNames}, peer.router().context())));
}

// The strings of an array, of which there are no more than a connection can provide.
std::vector<std::string> read_names(const ReservedCall& call, const ReservedParams<2>& params, std::size_t at) {
  std::vector<std::string> names;
  const RawValue* const sent = params.value(at);
  if (sent == nullptr) return names;
  if (sent->kind != ValueKind::array) params.refuse("methods", params.find(at), "array");
  const std::unique_ptr<Reader> reader = call.loop_context.codecs.codec.reader();
  reader->reset(sent->text);
  static_cast<void>(reader->begin_array());
  for (std::string_view name; reader->next_element();) {
    if (names.size() == call.limits.methods) throw too_many_methods();
    if (!reader->read_string(name)) {
      static_cast<void>(reader->failed_at(names.size()));
      rpc::detail::throw_failure(*reader, "methods");
    }
    names.emplace_back(name);
  }
  return names;
}

std::string unregister(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 2> kNames{"method", "methods"};
  const ReservedParams<2> params{call, kNames};
  std::vector<std::string> names = read_names(call, params, 1);
  if (const auto one = params.as<std::string>(0)) names.push_back(*one);
  if (names.empty()) params.refuse("method", params.find(0), "string");
  std::size_t count = 0;
  call.sink.charge(kRegistrationSteps * names.size());
  for (const std::string& name : names)
    count += peer_of(call).router().registrar().unregister(peer_of(call), name) ? 1 : 0;
  if (count != 0) peer_of(call).router().log().provides(peer_of(call), names.front(), count, true);
  return std::to_string(count);
}

// ---- events ----

template <std::size_t N>
std::string topic_of(const ReservedParams<N>& params, bool (*valid)(std::string_view), std::string_view expected) {
  std::optional<std::string> topic = params.template as<std::string>(0);
  if (!topic || !valid(*topic)) params.refuse("topic", params.find(0), expected);
  return *std::move(topic);
}

constexpr std::string_view kPattern = "words between dots, of which * stands for one and > at the end for the rest";

std::string subscribe(const ReservedCall& call) {
  require_events(call);
  static constexpr std::array<std::string_view, 5> kNames{"topic", "last", "group", "echo", "durable"};
  const ReservedParams<5> params{call, kNames};
  std::string topic = topic_of(params, &is_pattern, kPattern);
  const bool last = params.as<bool>(1).value_or(false);
  const std::string group = params.as<std::string>(2).value_or(std::string{});
  const bool echo = params.as<bool>(3).value_or(false);
  if (params.value(4) != nullptr) throw needs_store();  // else DurableTopics serves it
  if (group.size() > kNameBytesMax) params.refuse("group", params.find(2), "string of 255 bytes at most");
  peer_of(call).router().events().subscribe(peer_of(call), topic, {.group = group, .echo = echo});
  if (last) RetainedSender::request(peer_of(call), std::move(topic));
  return "true";
}

std::string unsubscribe(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 1> kNames{"topic"};
  const std::string topic = topic_of(ReservedParams{call, kNames}, &is_pattern, kPattern);
  if (!peer_of(call).router().events().unsubscribe(peer_of(call), topic)) {
    throw message::make(ErrorCode::no_subscription, "this connection does not subscribe to that", "no");
  }
  return "true";
}

std::string publish(const ReservedCall& call) {
  require_events(call);
  static constexpr std::array<std::string_view, 4> kNames{"topic", "params", "retain", "durable"};
  const ReservedParams<4> params{call, kNames};
  const auto valid = [](std::string_view topic) { return is_name(topic) && !is_reserved(topic); };
  const std::string topic =
      topic_of(params, valid, "words between dots, without white space, * and >; not one of rpc. or $/");
  const RawValue* const given = params.value(1);
  if (given != nullptr && given->kind != ValueKind::array && given->kind != ValueKind::object)
    params.refuse("params", params.find(1), "array or object");
  const bool retain = params.as<bool>(2).value_or(false);
  if (params.as<bool>(3).value_or(false)) throw needs_store();  // else DurableTopics serves it
  const EncodedText event{.text = given != nullptr ? given->text : std::string_view{},
                          .encoding = call.message.encoding};
  return std::to_string(peer_of(call).router().events().publish(peer_of(call), topic, event, retain));
}

// ---- rpc.tap ----

// Without a pattern, for all; with null, no more.
std::string tap(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 1> kNames{"pattern"};
  if (!rpc::is_admin(peer_of(call).principal)) throw forbidden();
  const ReservedParams params{call, kNames};
  const std::optional<RawValue>& given = params.find(0);
  if (given && given->kind == ValueKind::null)
    return peer_of(call).router().tap_feed().remove(peer_of(call)) ? "true" : "false";
  const std::string pattern = params.as<std::string>(0).value_or(">");
  if (!is_pattern(pattern)) params.refuse("pattern", given, kPattern);
  peer_of(call).router().tap_feed().add(peer_of(call), pattern);
  return "true";
}

// ---- streams ----

// A result of what the peer was asked for; or what it sends towards the handler of a call of its own, which is at
// another peer or in this process.
std::string pass_item(const ReservedCall& call) {
  Peer& peer = peer_of(call);
  if (peer.router().streams().item(peer, call.message) || peer.router().inputs().item(peer, call.message))
    return "null";
  static_cast<void>(rpc::receive_input_item(call));
  return "null";
}

std::string pass_progress(const ReservedCall& call) {
  peer_of(call).router().streams().progress(peer_of(call), call.message);
  return "null";
}

// ---- what there is, and who looks after it ----

template <auto render>
std::shared_ptr<rpc::Rendering> tell(const ReservedCall& call) {
  require_no_params(call);
  return (peer_of(call).router().inventory().*render)(call.asker());
}

struct Health {
  std::string_view status;
  std::int64_t uptime_ms;
};

std::string tell_health(const ReservedCall& call) {
  require_no_params(call);
  const Router& router = peer_of(call).router();
  const auto uptime = std::chrono::floor<std::chrono::milliseconds>(router.inventory().uptime());
  return to_json(Health{.status = router.is_draining() ? "draining" : "ok", .uptime_ms = uptime.count()});
}

std::string kick(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 1> kNames{"client"};
  if (!rpc::is_admin(peer_of(call).principal)) throw forbidden();
  const ReservedParams params{call, kNames};
  const auto name = params.as<std::string>(0);
  if (!name) params.refuse("client", params.find(0), "string");
  return peer_of(call).router().sessions().kick(peer_of(call), *name) ? "true" : "false";
}

std::shared_ptr<rpc::Rendering> tell_cluster(const ReservedCall& call) {
  require_no_params(call);
  const Realm* const realm = peer_of(call).router().context().realm.get();
  if (realm == nullptr) {
    throw Error::with_data(ErrorCode::method_not_found,
                           R"({"reason":"this broker is in no cluster: serve --cluster"})");
  }
  return realm->tell(call.asker());
}

constexpr auto kMethods = rpc::sorted_by_name(std::array{
    ReservedMethod{"rpc.register", &register_methods, ReservedMethod::Needs::connection},
    ReservedMethod{"rpc.unregister", &unregister, ReservedMethod::Needs::connection},
    ReservedMethod{"rpc.subscribe", &subscribe, ReservedMethod::Needs::connection},
    ReservedMethod{"rpc.unsubscribe", &unsubscribe, ReservedMethod::Needs::connection},
    ReservedMethod{"rpc.publish", &publish, ReservedMethod::Needs::source},
    ReservedMethod{.name = "rpc.methods", .serve = nullptr, .render = &tell<&Inventory::list_methods>},
    ReservedMethod{.name = "rpc.clients", .serve = nullptr, .render = &tell<&Inventory::list_clients>},
    ReservedMethod{.name = "rpc.stats", .serve = nullptr, .render = &tell<&Inventory::tell_stats>},
    ReservedMethod{"rpc.health", &tell_health},
    ReservedMethod{.name = "rpc.cluster", .serve = nullptr, .render = &tell_cluster},
    ReservedMethod{"rpc.kick", &kick, ReservedMethod::Needs::source},
    ReservedMethod{"rpc.tap", &tap, ReservedMethod::Needs::connection},
    ReservedMethod{"rpc.item", &pass_item, ReservedMethod::Needs::connection},
    ReservedMethod{"$/progress", &pass_progress, ReservedMethod::Needs::connection},
});

}  // namespace

Registration read_registration(std::string_view params, Reader& reader) {
  return read_one({reader, params, kRegisterNames}, reader);
}

std::vector<Registration> read_registrations(const BrokerContext& context, std::string_view params) {
  return read_all({*context.loop.codecs.readers.reader, params, kRegisterNames}, context);
}

std::size_t add_registrations(Peer& peer, std::vector<Registration> registrations) {
  Router& router = peer.router();
  require_open(router);
  const std::size_t count = registrations.size();
  peer.sink().charge(kRegistrationSteps * count);
  const std::string first = count != 0 ? registrations.front().name : std::string{};
  WorkQueues& queues = router.work_queues();
  std::vector<std::string> names;
  if (queues.waits_for_providers()) {
    for (const Registration& one : registrations) names.push_back(one.name);
  }
  router.registrar().register_methods(peer, std::move(registrations));
  if (count != 0) router.log().provides(peer, first, count, false);
  for (const std::string& name : names) queues.provided(name);
  return count;
}

std::span<const ReservedMethod> broker_methods() noexcept { return kMethods; }

const ReservedMethod* find_broker_method(std::string_view name) noexcept { return rpc::find_by_name(kMethods, name); }

}  // namespace wirecall::broker
