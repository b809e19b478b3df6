// The functions of wirecall.h for clients and their calls; client_at_broker.cpp has the rest.
#include "c/client.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>

#include "c/call.hpp"
#include "c/reply.hpp"

struct wc_pending {
  wirecall::CallHandle handle;
};

namespace wirecall::c {
namespace {

void set_options(detail::OutgoingCall& call, const wc_call_options* given) {
  if (given == nullptr) return;
  if (given->size < sizeof(std::size_t) + sizeof(std::int64_t))
    throw std::invalid_argument("the options have no size: set it to sizeof(wc_call_options)");
  wc_call_options options{};
  std::memcpy(&options, given, std::min(given->size, sizeof options));
  if (options.timeout_ms != 0)
    call.set_timeout(std::chrono::milliseconds{std::max<std::int64_t>(options.timeout_ms, 0)});
  if (options.idempotent) call.set_idempotent(true);
  if (options.to != nullptr) call.set_to(options.to);
  if (options.within != nullptr) call.set_context(context_of(*options.within));
}

detail::OutgoingCall outgoing(Client& client, const char* method, const char* params_json,
                              const wc_call_options* options) {
  detail::OutgoingCall call = client.outgoing(method);
  if (params_json != nullptr) call.set_params(params_json);
  set_options(call, options);
  call.want_json();
  return call;
}

std::unique_ptr<wc_reply> reply_of(detail::Answer& answer) {
  if (!answer.ok()) return std::make_unique<wc_reply>(std::move(answer.error()));
  return std::make_unique<wc_reply>(answer.result());
}

// Where there is no memory for the reply, there is one that says so and needs none.
void tell(detail::Answer& answer, wc_reply_function done, void* user) noexcept {
  try {
    const std::unique_ptr<const wc_reply> reply = reply_of(answer);
    return done(reply.get(), user);
  } catch (const std::bad_alloc&) {
    const wc_reply none{Error{ErrorCode::internal_error, "no memory"}};
    done(&none, user);
  }
}

}  // namespace
}  // namespace wirecall::c

using wirecall::c::guarded;
using wirecall::c::with_client;

wc_client* wc_client_new(const char* uri, const char* options_json) {
  return wirecall::c::guarded_pointer([=] {
    auto made = std::make_unique<wc_client>();
    wirecall::ClientOptions options =
        options_json != nullptr ? wirecall::ClientOptions::from_json(options_json) : wirecall::ClientOptions{};
    options.log = made->log.sink();
    made->client.emplace(wirecall::c::view_of(uri), std::move(options));
    return made.release();
  });
}

void wc_client_free(wc_client* client) { delete client; }

int wc_client_log(wc_client* client, wc_log_function log, void* user) {
  if (client == nullptr) return wirecall::c::fail_null();
  if (client->used.load(std::memory_order_relaxed))
    return wirecall::c::fail(WC_ERROR_STATE, "the client has been used: its log has to be set before");
  client->log.set(log, user);
  return WC_OK;
}

int wc_client_connect(wc_client* client) {
  return with_client(client, {}, [](wirecall::Client& connected) { connected.connect(); });
}

wc_reply* wc_client_call(wc_client* client, const char* method, const char* params_json,
                         const wc_call_options* options) {
  wc_reply* reply = nullptr;
  with_client(client, {method}, [&](wirecall::Client& calling) {
    wirecall::detail::OutgoingCall call = wirecall::c::outgoing(calling, method, params_json, options);
    wirecall::detail::Answer answer = call.wait();
    reply = wirecall::c::reply_of(answer).release();
  });
  return reply;
}

int wc_client_start(wc_client* client, const char* method, const char* params_json, const wc_call_options* options,
                    wc_reply_function done, void* user, wc_pending** pending) {
  if (client != nullptr && done == nullptr)
    return wirecall::c::fail(WC_ERROR_ARGUMENT, "nobody is told of the reply: use notify");
  return with_client(client, {method}, [=](wirecall::Client& calling) {
    wirecall::detail::OutgoingCall call = wirecall::c::outgoing(calling, method, params_json, options);
    if (pending == nullptr)
      return call.start([done, user](wirecall::detail::Answer& answer) { wirecall::c::tell(answer, done, user); });
    auto handle = std::make_unique<wc_pending>();
    // The answer may be there at once, and `done` may look at what is to be in `*pending`.
    const auto is_told = std::make_shared<std::atomic_flag>();
    call.start([done, user, is_told](wirecall::detail::Answer& answer) {
      is_told->wait(false);
      wirecall::c::tell(answer, done, user);
    });
    handle->handle = call.handle();
    *pending = handle.release();
    is_told->test_and_set();
    is_told->notify_one();
  });
}

bool wc_pending_cancel(wc_pending* pending) {
  bool cancelled = false;
  if (pending == nullptr) {
    wirecall::c::fail_null();
  } else {
    guarded([&] { cancelled = pending->handle.cancel(); });
  }
  return cancelled;
}

void wc_pending_free(wc_pending* pending) { delete pending; }

int wc_client_notify(wc_client* client, const char* method, const char* params_json) {
  return with_client(client, {method}, [=](wirecall::Client& sending) {
    const auto sent = sending.notify_raw(wirecall::c::view_of(method), wirecall::c::view_of(params_json));
    if (!sent) throw wirecall::Error{sent.error()};
  });
}
