// The functions of wirecall.h by which a client provides, subscribes and publishes at a broker.
#include <memory>
#include <string>

#include "c/client.hpp"
#include "c/json_options.hpp"
#include "c/json_text.hpp"
#include "c/method.hpp"

struct wc_subscription {
  wirecall::Subscription subscription;
};

using wirecall::c::fail;
using wirecall::c::view_of;
using wirecall::c::with_client;

int wc_client_provide(wc_client* client, const wc_method* method, const char* options_json) {
  return with_client(client, {method}, [=](wirecall::Client& providing) {
    wirecall::c::MethodDescription described{method};
    wirecall::ProvideOptions options = wirecall::c::provide_options(view_of(options_json));
    options.params = described.params();
    options.summary = view_of(described.described().summary);
    options.safe = described.described().safe;
    providing.provide(described.name(), described.bind(), options);
    described.provided();
  });
}

int wc_client_unprovide(wc_client* client, const char* name) {
  return with_client(client, {name}, [=](wirecall::Client& providing) -> int {
    if (providing.unprovide(name)) return WC_OK;
    return fail(WC_ERROR_ARGUMENT, "the client provides no method of that name");
  });
}

wc_subscription* wc_client_subscribe(wc_client* client, const char* topic, const char* options_json,
                                     wc_event_function function, void* user) {
  if (function == nullptr) {
    wirecall::c::fail_null();
    return nullptr;
  }
  wc_subscription* made = nullptr;
  with_client(client, {topic}, [&](wirecall::Client& subscribing) {
    auto subscription = std::make_unique<wc_subscription>();
    subscription->subscription = subscribing.subscribe(topic, wirecall::c::subscribe_options(view_of(options_json)),
                                                       [function, user](const wirecall::Event& event) {
                                                         const std::string json{event.value_json()};
                                                         function(event.topic.c_str(), json.c_str(), json.size(), user);
                                                       });
    made = subscription.release();
  });
  return made;
}

void wc_subscription_free(wc_subscription* subscription) { delete subscription; }

int wc_client_publish(wc_client* client, const char* topic, const char* json, bool retain, size_t* receivers) {
  return with_client(client, {topic}, [=](wirecall::Client& publishing) -> int {
    const wirecall::PublishOptions options{.retain = retain};
    std::size_t count = 0;
    if (json == nullptr) {
      count = publishing.publish(topic, options);
    } else {
      const wirecall::c::JsonText text{json};
      if (!text.is_valid()) return fail(WC_ERROR_ARGUMENT, "the value is no JSON text");
      count = publishing.publish(topic, wirecall::Raw{std::string{text.view()}}, options);
    }
    if (receivers != nullptr) *receivers = count;
    return WC_OK;
  });
}
