// See declarations.hpp.
#include "client/declarations.hpp"

#include <algorithm>
#include <charconv>

#include "base/dotted_name.hpp"
#include "base/reserve_extra.hpp"
#include "rpc/openrpc.hpp"

namespace wirecall::net {

// No call has such an id: theirs are numbers.
constexpr std::string_view kRegisterId = R"("rpc.register:)";
constexpr std::string_view kSubscribeId = R"("rpc.subscribe:)";
constexpr std::string_view kTapId = R"("rpc.tap:)";
constexpr std::string_view kTapTopic = "rpc.tap";

static std::string message_of(std::string_view method, std::string_view params, std::uint64_t number) {
  std::string text = R"({"jsonrpc":"2.0","method":")";
  text.append(method).append(R"(","params":)").append(params).append(R"(,"id":")").append(method);
  return text.append(":").append(std::to_string(number)).append("\"}");
}

// 0 for none.
static std::uint64_t number_of(std::string_view id) noexcept {
  for (const std::string_view begin : {kRegisterId, kSubscribeId, kTapId}) {
    if (!id.starts_with(begin)) continue;
    std::uint64_t number = 0;
    const char* const end = id.data() + id.size() - 1;
    const auto [at, error] = std::from_chars(id.data() + begin.size(), end, number);
    if (error == std::errc{} && at == end) return number;
  }
  return 0;
}

static void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("wirecall: " + what);
}

static bool same_to_broker(const ClientSubscription& a, const ClientSubscription& b) noexcept {
  return a.tap == b.tap && a.name == b.name && a.options.durable == b.options.durable;
}

// On the present connection; what was refused there need not be retracted.
static bool server_may_have(const Declaration& declaration) noexcept {
  return declaration.message != 0 && !(declaration.answered && declaration.refusal);
}

static void write_options(Writer& writer, const Method& method, const ProvideOptions& options) {
  const auto member = [&writer](std::string_view name, const auto& value, bool given) {
    if (!given) return;
    writer.key(name);
    encode(writer, value);
  };
  member("summary", options.summary, !options.summary.empty());
  member("policy", options.policy, !options.policy.empty());
  const std::uint32_t concurrency = options.concurrency.value_or(method.concurrency());
  member("concurrency", concurrency, concurrency != 0);
  member("queue", options.queue, options.queue.has_value());
  member("idempotent", true, options.idempotent);
  member("safe", true, options.safe);
}

// Of a method that subscribes: what else belongs to it.
static void write_names(Writer& writer, const SubscriptionNames& names) {
  writer.key("subscription");
  writer.begin_object(2);
  writer.key("unsubscribe");
  writer.string(names.unsubscribe);
  writer.key("notification");
  writer.string(names.notification);
  writer.end_object();
}

Declaration Declarations::of_method(const Method& method, const ProvideOptions& options) {
  Buffer text;
  const std::unique_ptr<Writer> writer = json_codec().writer();
  writer->reset(text);
  writer->begin_object(Writer::kUnknownSize);
  writer->key("method");
  writer->string(method.name());
  rpc::write_params(*writer, method);
  rpc::write_result(*writer, method);
  if (const TypeInfo* const input = method.signature().input) {
    writer->key("input");
    writer->json(json_schema(*input));
  }
  if (const SubscriptionNames* const names = method.subscription()) write_names(*writer, *names);
  write_options(*writer, method, options);
  writer->end_object();
  require(!writer->failed(), "what is said of " + method.name() + " is no JSON: " + writer->failure());
  return {.name = method.name(), .params = std::string{text.view()}};
}

// Of a subscription that joins a consumer of durable topics.
static void write_consumer(std::string& params, const SubscribeOptions& options) {
  if (options.durable.empty()) {
    require(options.start.empty() && !options.ack_wait_ms && !options.max_deliver && !options.max_in_flight,
            "start, ack_wait_ms, max_deliver and max_in_flight are of a consumer: name it by durable");
    return;
  }
  require(options.group.empty() && !options.echo && !options.last,
          "a subscription with durable has no group, echo and last");
  params += R"(,"durable":)" + to_json(options.durable);
  const bool is_seq = options.start.find_first_not_of("0123456789") == std::string::npos;
  if (!options.start.empty()) params += R"(,"start":)" + (is_seq ? options.start : to_json(options.start));
  const auto member = [&params](std::string_view name, const std::optional<std::uint32_t>& value) {
    if (value) params.append(",\"").append(name).append("\":").append(std::to_string(*value));
  };
  member("ack_wait_ms", options.ack_wait_ms);
  member("max_deliver", options.max_deliver);
  member("max_in_flight", options.max_in_flight);
}

static std::shared_ptr<ClientSubscription> subscription_to(std::string_view pattern, SubscribeOptions options) {
  require(is_pattern(pattern), "\"" + std::string{pattern} +
                                   "\" is no topic: words between dots, 1 to 255 bytes without white space, of which "
                                   "any may be *, and the last one >");
  auto subscription = std::make_shared<ClientSubscription>();
  subscription->name = pattern;
  std::string& params = subscription->params;
  params = R"({"topic":)" + to_json(pattern);
  if (!options.group.empty()) params += R"(,"group":)" + to_json(options.group);
  if (options.echo) params += R"(,"echo":true)";
  if (options.last) params += R"(,"last":true)";
  write_consumer(params, options);
  params += "}";
  subscription->options = std::move(options);
  return subscription;
}

std::shared_ptr<ClientSubscription> Declarations::of_topic(std::string_view pattern, SubscribeOptions options,
                                                           EventFunction function) {
  auto subscription = subscription_to(pattern, std::move(options));
  require(function != nullptr, "there is no function for the events of " + std::string{pattern});
  subscription->function = std::move(function);
  return subscription;
}

std::shared_ptr<ClientSubscription> Declarations::of_consumed_topic(std::string_view pattern, SubscribeOptions options,
                                                                    ConsumerFunction function) {
  require(!options.durable.empty(), "a consumer has a name: SubscribeOptions::durable");
  auto subscription = subscription_to(pattern, std::move(options));
  require(function != nullptr, "there is no function for the events of " + std::string{pattern});
  subscription->consumer = std::move(function);
  return subscription;
}

std::shared_ptr<ClientSubscription> Declarations::of_tap(std::string_view pattern, EventFunction function) {
  require(is_pattern(pattern), "\"" + std::string{pattern} + "\" is no pattern for rpc.tap");
  require(function != nullptr, "there is no function for what rpc.tap shows");
  auto tap = std::make_shared<ClientSubscription>();
  tap->name = kTapTopic;
  tap->params = R"({"pattern":)" + to_json(pattern) + "}";
  tap->function = std::move(function);
  tap->tap = true;
  return tap;
}

void Declarations::add(std::shared_ptr<ClientSubscription> subscription) {
  for (const auto& other : subscriptions_) {
    require(subscription->options.durable.empty() || other->options.durable != subscription->options.durable,
            "this client has joined the consumer " + subscription->options.durable + " already");
    if (!same_to_broker(*other, *subscription)) continue;
    require(!other->tap || other->params == subscription->params,
            "this client has rpc.tap with another pattern: a connection has one; use another client");
    require(other->options.group == subscription->options.group && other->options.echo == subscription->options.echo,
            "this client subscribes to " + other->name +
                " already, with another group or echo: a connection has one of each for a topic; use another client");
  }
  subscriptions_.push_back(std::move(subscription));
}

std::optional<bool> Declarations::remove_method(std::string_view name) noexcept {
  const auto found = std::ranges::find(methods_, name, &Declaration::name);
  if (found == methods_.end()) return std::nullopt;
  const bool told = server_may_have(*found);
  methods_.erase(found);
  return told;
}

bool Declarations::remove(const ClientSubscription& subscription) noexcept {
  const bool told = server_may_have(subscription) || subscription.inherited;
  std::erase_if(subscriptions_, [&](const auto& one) { return one.get() == &subscription; });
  const auto other =
      std::ranges::find_if(subscriptions_, [&](const auto& one) { return same_to_broker(*one, subscription); });
  if (other == subscriptions_.end()) return told;
  (*other)->inherited |= told;
  return false;
}

Declarations::Subscriptions Declarations::of_event(std::string_view topic) const {
  Subscriptions found;
  for (const auto& subscription : subscriptions_) {
    if (!subscription->options.durable.empty()) continue;
    if (subscription->tap == (topic == kTapTopic) && matches(subscription->name, topic)) found.push_back(subscription);
  }
  return found;
}

std::shared_ptr<ClientSubscription> Declarations::of_consumer(std::string_view name) const {
  const auto found =
      std::ranges::find_if(subscriptions_, [name](const auto& one) { return one->options.durable == name; });
  return found == subscriptions_.end() ? nullptr : *found;
}

std::size_t Declarations::append_messages(std::vector<std::string>& out) {
  std::vector<std::string> texts;
  std::uint64_t number = last_message_;
  const auto add = [&](std::string_view method, std::string_view params) {
    texts.push_back(message_of(method, params, ++number));
  };
  const std::string begin = R"({"methods":[)";
  std::string together;
  for (const Declaration& method : methods_) {
    if (method.message != 0 || method.apart) continue;
    together += together.empty() ? begin : ",";
    together += method.params;
  }
  if (!together.empty()) add("rpc.register", together + "]}");
  for (const Declaration& method : methods_) {
    if (method.message == 0 && method.apart) add("rpc.register", begin + method.params + "]}");
  }
  for (const auto& subscription : subscriptions_) {
    if (subscription->message == 0) add(subscription->tap ? "rpc.tap" : "rpc.subscribe", subscription->params);
  }
  reserve_extra(out, texts.size());  // from here on nothing fails
  std::ranges::move(texts, std::back_inserter(out));
  const std::uint64_t first = last_message_ + 1;
  last_message_ += together.empty() ? 0 : 1;
  const bool several = std::ranges::count_if(methods_, [](const auto& m) { return m.message == 0 && !m.apart; }) > 1;
  each([&](Declaration& declaration, bool is_method) {
    if (declaration.message != 0) return;
    const bool in_one = is_method && !declaration.apart;
    declaration.together = in_one && several;
    declaration.message = in_one ? first : ++last_message_;
  });
  return texts.size();
}

void Declarations::forget_messages() noexcept {
  each([](Declaration& declaration, bool) {
    declaration.message = 0;
    declaration.apart = declaration.answered = false;
  });
  for (const auto& subscription : subscriptions_) subscription->inherited = false;
}

bool Declarations::is_answer(std::string_view id) noexcept { return number_of(id) != 0; }

std::vector<std::string> Declarations::answered(std::string_view id, const std::optional<Error>& refusal) {
  const std::uint64_t number = number_of(id);
  const bool one_of_several = refusal && refusal->code() != static_cast<int>(ErrorCode::method_not_found);
  std::vector<std::string> names;
  each([&](Declaration& declaration, bool) {
    if (declaration.message != number || declaration.answered) return;
    if (one_of_several && declaration.together) {
      declaration.message = 0;
      declaration.apart = true;
      return;
    }
    names.push_back(declaration.name);
    declaration.refusal = refusal;
    declaration.answered = true;
  });
  return names;
}

std::vector<std::string> Declarations::refuse(const Error& why) {
  std::vector<std::string> names;
  each([&](Declaration& declaration, bool) {
    if (declaration.answered) return;
    names.push_back(declaration.name);
    declaration.refusal = why;
    declaration.answered = true;
  });
  return names;
}

std::vector<std::string> Declarations::names() const {
  std::vector<std::string> names;
  for (const Declaration& method : methods_) names.push_back(method.name);
  for (const auto& subscription : subscriptions_) names.push_back(subscription->name);
  return names;
}

bool Declarations::all_answered() const noexcept {
  const auto answered = [](const Declaration& declaration) { return declaration.answered; };
  return std::ranges::all_of(methods_, answered) &&
         std::ranges::all_of(subscriptions_, [&](const auto& subscription) { return answered(*subscription); });
}

const Declaration* Declarations::refused() const noexcept {
  for (const Declaration& method : methods_) {
    if (method.refusal) return &method;
  }
  for (const auto& subscription : subscriptions_) {
    if (subscription->refusal) return subscription.get();
  }
  return nullptr;
}

}  // namespace wirecall::net
