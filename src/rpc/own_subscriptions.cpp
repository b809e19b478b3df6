// See own_subscriptions.hpp.
#include "rpc/own_subscriptions.hpp"

#include "base/random_id.hpp"
#include "message/call_text.hpp"
#include "message/error_text.hpp"
#include "message/own_error.hpp"
#include "rpc/pending.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::rpc {

// An event up to its value.
static std::string event_head(std::string_view notification, std::string_view id, std::string_view member) {
  std::string text;
  message::begin_call(text, to_json(notification), R"({"subscription":")");
  return text.append(id).append("\",\"").append(member).append("\":");
}

Context context_of(const Context& call, std::stop_token stop) {
  return {call.method(),
          call.id(),
          std::move(stop),
          call.scheduler(),
          {.began = {}, .deadline = kNoDeadline, .hops = call.hops()},
          call.caller_link(),
          call.peer_credentials(),
          call.caller_name()};
}

class OwnSubscriptions::Sink final : public detail::EventSink {
 public:
  Sink(OwnSubscriptions& table, const Method& method, const Context& call, std::shared_ptr<CallerLink> link,
       std::string id, std::shared_ptr<SentItems> items, std::stop_source stop)
      : EventSink(std::move(id), context_of(call, stop.get_token()), items),
        table_(table.shared_from_this()),
        method_(&method),
        link_(std::move(link)),
        sent_(std::move(items)),
        stop_(std::move(stop)) {}
  ~Sink() override {
    if (listed_) table_->by_id_.erase(id());
    sent_->call_ended();
  }

  [[nodiscard]] Completion<> answered() override { return link_->answered(); }
  void fail(const std::exception_ptr& error) noexcept override {
    if (!listed_) return;
    try {
      std::rethrow_exception(error);
    } catch (...) {
      send_error(error_of_exception(*table_->loop_context_, *method_));
    }
  }

  void list() {
    table_->by_id_.emplace(id(), this);
    listed_ = true;
  }
  void unlist() noexcept {
    listed_ = false;
    sent_->call_ended();
  }
  [[nodiscard]] const Method& method() const noexcept { return *method_; }
  [[nodiscard]] const std::stop_source& stop() const noexcept { return stop_; }

 private:
  void send_error(const Error& error) noexcept {
    try {
      const std::string text = event_head(method_->subscription()->notification, id(), "error");
      const Buffer data = clean_data(*table_->loop_context_, *method_, error);
      const Error clean{error.code(), error.message(), std::string{data.view()}};
      link_->send_behind_answer(text + message::error_text(clean) + "}}");
    } catch (const std::exception&) {
      // As an event that is lost.
    }
  }

  std::shared_ptr<OwnSubscriptions> table_;
  const Method* method_;
  std::shared_ptr<CallerLink> link_;
  std::shared_ptr<SentItems> sent_;
  std::stop_source stop_;
  bool listed_ = false;
};

std::shared_ptr<detail::EventSink> OwnSubscriptions::begin(const Method& method, Context context,
                                                           std::shared_ptr<CallerLink> link, MessageForm form) {
  if (by_id_.size() >= limits_->subscriptions) {
    throw message::limit_exceeded("too many subscriptions of this connection", "subscriptions");
  }
  std::string id = random_id();
  const std::string head = event_head(method.subscription()->notification, id, "result");
  auto items = std::make_shared<SentItems>(*message_sink_, *loop_context_, form, *queue_, limits_->max_message_size,
                                           SentItems::Way::event, head, 0);
  const auto sink = std::make_shared<Sink>(*this, method, context, std::move(link), std::move(id), std::move(items),
                                           std::stop_source{});
  sink->list();
  return sink;
}

void OwnSubscriptions::end(ById::iterator at) noexcept {
  Sink& sink = *at->second;
  std::stop_source stop = sink.stop();  // the task may end, and the sink with it
  by_id_.erase(at);
  sink.unlist();
  loop_context_->stop_requests.ask(std::move(stop));
}

bool OwnSubscriptions::end(std::string_view id, std::string_view unsubscribe) noexcept {
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->method().subscription()->unsubscribe != unsubscribe) return false;
  end(found);
  return true;
}

void OwnSubscriptions::end_all() noexcept {
  const std::shared_ptr<OwnSubscriptions> self = shared_from_this();  // whoever stops may drop it
  while (!by_id_.empty()) end(by_id_.begin());
}

}  // namespace wirecall::rpc

namespace wirecall {

// ---- the method that ends them ----

using UnsubscribeShape = detail::Shape<bool, std::string>;

static void unsubscribe(void*, Call& call) {
  UnsubscribeShape::Arguments arguments{};
  detail::ParamReaders& readers = call.param_readers();
  if (!detail::decode_arguments(call.params(), call.method(), readers, arguments))
    return call.invalid_params(*readers.reader);
  detail::answer(call, call.unsubscribe(std::get<0>(arguments)));
}

Method& Registry::add_subscription(SubscriptionNames names, std::vector<Param> params, detail::Binding binding) {
  if (names.unsubscribe == names.subscribe)
    throw std::invalid_argument("wirecall: subscription " + names.subscribe + " has one name for both its methods");
  if (binding.signature->event == nullptr)
    throw std::invalid_argument("wirecall: subscription " + names.subscribe +
                                " has a function that brings no events, such as a batched one; it is a coroutine that "
                                "returns a Stream");
  const Method* const known = find(names.unsubscribe);
  const bool shared = known != nullptr && known->binding_.invoke == &unsubscribe;
  if (known != nullptr && !shared)
    throw Error{ErrorCode::conflict, "method " + names.unsubscribe + " is registered already"};
  require_name(names.notification);
  auto declared = std::make_unique<SubscriptionNames>(std::move(names));
  Method& method = add(declared->subscribe, std::move(params), std::move(binding));
  try {
    if (!shared) {
      add(declared->unsubscribe, {"subscription"},
          {.callable = {nullptr, [](void*) {}}, .invoke = &unsubscribe, .signature = &UnsubscribeShape::kSignature})
          .summary("Ends a subscription of this connection; false when there is none of that id");
    }
  } catch (...) {
    remove(method.name());
    throw;
  }
  method.subscription_ = std::move(declared);
  return method;
}

// ---- what the typed edge and Python ask of a call ----

std::shared_ptr<detail::EventSink> Call::subscribe() {
  rpc::ServedPeer& peer = state_->peer;
  const bool takes_events = peer.sink.capabilities().events;
  if (is_notification() || !takes_events) {
    error(Error::with_data(ErrorCode::invalid_request, takes_events ? "" : R"({"reason":"needs_connection"})"));
    return nullptr;
  }
  rpc::PendingCalls& calls = peer.pending();
  if (!calls.subscriptions) {
    calls.subscriptions =
        std::make_shared<rpc::OwnSubscriptions>(peer.sink, peer.loop, peer.limits, calls.waiting_until_writable);
  }
  Context seen = context();
  try {
    return calls.subscriptions->begin(*method_, std::move(seen), state_->extras().link, form());
  } catch (const Error& refusal) {
    error(refusal);
    return nullptr;
  }
}

bool Call::unsubscribe(std::string_view id) noexcept {
  const std::shared_ptr<rpc::PendingCalls> calls = state_->peer.calls;
  if (!calls || !calls->subscriptions) return false;
  const std::shared_ptr<rpc::OwnSubscriptions> subscriptions = calls->subscriptions;
  return subscriptions->end(id, method_->name());
}

}  // namespace wirecall
