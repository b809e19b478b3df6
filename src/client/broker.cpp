// See client.hpp, subscription.hpp and provider.hpp: what users hold of a broker, over a BrokerSession.

#include "client/core.hpp"
#include "message/error_text.hpp"
#include "message/read_error.hpp"
#include "wirecall/client.hpp"

namespace wirecall {

std::string_view Event::value_json() const {
  if (params_json.empty()) return "null";
  Buffer padded{params_json};
  const std::unique_ptr<Reader> reader = json_codec().reader();
  reader->reset(padded.padded());
  if (reader->kind() != ValueKind::array || !reader->begin_array() || !reader->next_element()) return params_json;
  const ValueKind kind = reader->kind();
  const std::string_view element = reader->skip();
  if (kind == ValueKind::array || kind == ValueKind::object || reader->next_element()) return params_json;
  return std::string_view{params_json}.substr(static_cast<std::size_t>(element.data() - padded.data()), element.size());
}

void Subscription::unsubscribe() noexcept {
  const std::shared_ptr<net::ClientSubscription> entry = std::exchange(entry_, nullptr);
  const std::shared_ptr<net::ClientCore> core = std::exchange(core_, {}).lock();
  if (entry != nullptr && core != nullptr) core->broker().unsubscribe(*entry);
}

void Subscription::keep() noexcept {
  entry_.reset();
  core_.reset();
}

void Client::provide_method(std::string_view name, const ProvideOptions& options,
                            const std::function<Method&(Registry&)>& add) {
  core_->broker().provide(name, options, add);
}
bool Client::unprovide(std::string_view name) { return core_->broker().unprovide(name); }
void Client::exclusively(const std::function<void()>& change) { core_->driver().exclusively(change); }
// Of a consumer the function acknowledges an event by returning.
Subscription Client::subscribe(std::string_view topic, SubscribeOptions options, EventFunction function) {
  if (!options.durable.empty() && function != nullptr) {
    return consume(topic, std::move(options),
                   [function = std::move(function)](const Event& event, EventReply reply) mutable {
                     try {
                       function(event);
                       reply.acknowledge();
                     } catch (const Error& error) {
                       reply.refuse(error);
                       throw;
                     }
                   });
  }
  return Subscription{core_, core_->broker().subscribe(topic, std::move(options), std::move(function))};
}
Subscription Client::consume(std::string_view topic, SubscribeOptions options, ConsumerFunction function) {
  return Subscription{core_,
                      core_->broker().consume(topic, std::move(options), std::move(function), std::weak_ptr{core_})};
}
Subscription Client::tap(std::string_view pattern, EventFunction function) {
  return Subscription{core_, core_->broker().tap(pattern, std::move(function))};
}
void Client::on_refused(RefusedFunction function) { core_->broker().on_refused(std::move(function)); }
void Client::on_lagged(LaggedFunction function) { core_->broker().on_lagged(std::move(function)); }
void Client::on_connection(ConnectionFunction function) { core_->connections().on_connection(std::move(function)); }

// Begins the params of rpc.publish: `topic`, and `params` where there is a value.
static void write_event(Writer& writer, std::string_view topic, const std::function<void(Writer&)>& encode_value) {
  Buffer value;
  std::string failure;
  if (encode_value) {
    const std::unique_ptr<Writer> own = json_codec().writer();
    own->reset(value);
    encode_value(*own);
    failure = own->failure();
  }
  writer.begin_object(Writer::kUnknownSize);
  writer.key("topic");
  writer.string(topic);
  if (!failure.empty()) {
    writer.fail(failure);
  } else if (const std::string_view text = value.view(); !text.empty()) {
    const bool wrapped = text.front() != '[' && text.front() != '{';
    writer.key("params");
    if (wrapped) writer.begin_array(1);
    writer.json(text);
    if (wrapped) writer.end_array();
  }
}

Request<std::size_t> Client::publication_of(std::string_view topic, const PublishOptions& options,
                                            const std::function<void(Writer&)>& encode_value) const {
  detail::OutgoingCall call{core_, "rpc.publish"};
  Writer& writer = call.params();
  write_event(writer, topic, encode_value);
  if (options.retain) {
    writer.key("retain");
    writer.boolean(true);
  }
  writer.end_object();
  return Request<std::size_t>{std::move(call)};
}

detail::OutgoingCall Client::durable_call(std::string_view topic, std::string_view msg_id,
                                          const std::function<void(Writer&)>& encode_value) const {
  detail::OutgoingCall call{core_, "rpc.publish"};
  Writer& writer = call.params();
  write_event(writer, topic, encode_value);
  writer.key("durable");
  writer.boolean(true);
  if (!msg_id.empty()) {
    writer.key("msg_id");
    writer.string(msg_id);
  }
  writer.end_object();
  return call;
}

// ---- EventReply ----

EventReply& EventReply::operator=(EventReply&& other) noexcept {
  EventReply former{std::exchange(core_, std::move(other.core_)), std::exchange(id_, std::exchange(other.id_, {}))};
  return *this;
}

EventReply::~EventReply() {
  if (!id_.empty()) answer(R"("error":{"code":-32603,"message":"Internal error"})");
}

void EventReply::acknowledge() noexcept { answer(R"("result":null)"); }

void EventReply::refuse(const Error& error) noexcept try {
  answer(R"("error":)" + message::error_text(error));
} catch (const std::exception&) {
  // The destructor refuses it.
}

void EventReply::answer(std::string_view member) noexcept try {
  const std::string id = std::exchange(id_, {});
  const std::shared_ptr<net::ClientCore> core = core_.lock();
  if (id.empty() || core == nullptr) return;
  core->broker().reply(std::string{R"({"jsonrpc":"2.0",)"}.append(member).append(R"(,"id":)").append(id).append("}"));
} catch (const std::exception&) {
  // Without memory, or a connection: the event comes again.
}

namespace detail {

Error take_error(Reader& reader) {
  const std::string_view text = reader.skip();
  const std::unique_ptr<Reader> own = json_codec().reader();
  return message::read_error(*own, text);
}

}  // namespace detail
}  // namespace wirecall
