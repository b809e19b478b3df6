// See client.hpp, subscription.hpp and provider.hpp: what users hold of a broker, over a BrokerSession.

#include "client/core.hpp"
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
Subscription Client::subscribe(std::string_view topic, SubscribeOptions options, EventFunction function) {
  return Subscription{core_, core_->broker().subscribe(topic, std::move(options), std::move(function))};
}
Subscription Client::tap(std::string_view pattern, EventFunction function) {
  return Subscription{core_, core_->broker().tap(pattern, std::move(function))};
}
void Client::on_refused(RefusedFunction function) { core_->broker().on_refused(std::move(function)); }
void Client::on_lagged(LaggedFunction function) { core_->broker().on_lagged(std::move(function)); }
void Client::on_connection(ConnectionFunction function) { core_->connections().on_connection(std::move(function)); }

Request<std::size_t> Client::publication_of(std::string_view topic, const PublishOptions& options,
                                            const std::function<void(Writer&)>& encode_value) const {
  detail::OutgoingCall call{core_, "rpc.publish"};
  Buffer value;
  std::string failure;
  if (encode_value) {
    const std::unique_ptr<Writer> own = json_codec().writer();
    own->reset(value);
    encode_value(*own);
    failure = own->failure();
  }
  Writer& writer = call.params();
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
  if (options.retain) {
    writer.key("retain");
    writer.boolean(true);
  }
  writer.end_object();
  return Request<std::size_t>{std::move(call)};
}

namespace detail {

Error take_error(Reader& reader) {
  const std::string_view text = reader.skip();
  const std::unique_ptr<Reader> own = json_codec().reader();
  return message::read_error(*own, text);
}

}  // namespace detail
}  // namespace wirecall
