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
using wirecall::c::guarded;
using wirecall::c::no_client;
using wirecall::c::view_of;

int wc_client_provide(wc_client* client, const wc_method* method, const char* options_json) {
  if (client == nullptr) return no_client();
  return guarded([=] {
    wirecall::c::MethodDescription described{method};
    wirecall::ProvideOptions options = wirecall::c::provide_options(view_of(options_json));
    options.params = described.params();
    options.summary = view_of(described.described().summary);
    options.safe = described.described().safe;
    client->client->provide(described.name(), described.bind(), options);
    described.provided();
  });
}

int wc_client_unprovide(wc_client* client, const char* name) {
  if (client == nullptr) return no_client();
  return guarded([=]() -> int {
    if (client->client->unprovide(view_of(name))) return WC_OK;
    return fail(WC_ERROR_ARGUMENT, "the client provides no method of that name");
  });
}

wc_subscription* wc_client_subscribe(wc_client* client, const char* topic, const char* options_json,
                                     wc_event_function function, void* user) {
  return wirecall::c::guarded_pointer([=] {
    if (client == nullptr || function == nullptr) throw std::invalid_argument("an argument is NULL");
    auto subscription = std::make_unique<wc_subscription>();
    subscription->subscription =
        client->client->subscribe(view_of(topic), wirecall::c::subscribe_options(view_of(options_json)),
                                  [function, user](const wirecall::Event& event) {
                                    const std::string json{event.value_json()};
                                    function(event.topic.c_str(), json.c_str(), json.size(), user);
                                  });
    return subscription.release();
  });
}

void wc_subscription_free(wc_subscription* subscription) { delete subscription; }

int wc_client_publish(wc_client* client, const char* topic, const char* json, bool retain, size_t* receivers) {
  if (client == nullptr) return no_client();
  return guarded([=]() -> int {
    const wirecall::PublishOptions options{.retain = retain};
    std::size_t count = 0;
    if (json == nullptr) {
      count = client->client->publish(view_of(topic), options);
    } else {
      const wirecall::c::JsonText text{json};
      if (!text.is_valid()) return fail(WC_ERROR_ARGUMENT, "the value is no JSON text");
      count = client->client->publish(view_of(topic), wirecall::Raw{std::string{text.view()}}, options);
    }
    if (receivers != nullptr) *receivers = count;
    return WC_OK;
  });
}
