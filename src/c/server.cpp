// The functions of wirecall.h for servers and brokers.
#include "c/server.hpp"

#include <memory>
#include <string>

#include "c/entry.hpp"
#include "c/method.hpp"
#include "wirecall/broker.hpp"

namespace wirecall::c {

int require_before_run(const wc_server* server) noexcept {
  if (server == nullptr) return fail(WC_ERROR_ARGUMENT, "there is no server");
  if (server->phase.load() != wc_server::Phase::before_run)
    return fail(WC_ERROR_STATE, "the server runs, or has run: this has to be done before wc_server_run");
  if (server->serving) return fail(WC_ERROR_STATE, "the server handles a message: this cannot be done in a handler");
  return WC_OK;
}

int require_owner(const wc_server* server) noexcept {
  if (server == nullptr) return fail(WC_ERROR_ARGUMENT, "there is no server");
  if (!server->owned)
    return fail(WC_ERROR_STATE, "a module adds methods to its server, and uses no other function of that");
  return WC_OK;
}

int require_owner_before_run(const wc_server* server) noexcept {
  const int status = require_owner(server);
  return status == WC_OK ? require_before_run(server) : status;
}

}  // namespace wirecall::c

using wirecall::c::fail;
using wirecall::c::guarded;

namespace {

template <class Kind>
wc_server* make(const char* options_json) noexcept {
  return wirecall::c::guarded_pointer([options_json] {
    auto made = std::make_unique<wc_server>();
    wirecall::Options options =
        options_json != nullptr ? wirecall::Options::from_json(options_json) : wirecall::Options{};
    options.log = made->log.sink();
    made->owned = std::make_unique<Kind>(options);
    made->server = made->owned.get();
    // For wc_server_handle, which needs no port.
    made->registry = &made->server->registry();
    made->registry->set_limits(options.limits);
    made->registry->set_log(options.log.at_least(options.log_level));
    return made.release();
  });
}

using Phase = wc_server::Phase;
using wirecall::c::require_before_run;
using wirecall::c::require_owner;
using wirecall::c::require_owner_before_run;

int run(wc_server* server, wirecall::OnSignals on_signals) noexcept {
  if (const int status = require_owner_before_run(server); status != WC_OK) return status;
  if (Phase before = Phase::before_run; !server->phase.compare_exchange_strong(before, Phase::running))
    return fail(WC_ERROR_STATE, "the server runs already");
  const int status = guarded([=] { static_cast<void>(server->server->run(on_signals)); });
  server->phase.store(Phase::over);
  return status;
}

}  // namespace

wc_server* wc_server_new(const char* options_json) { return make<wirecall::Server>(options_json); }
wc_server* wc_broker_new(const char* options_json) { return make<wirecall::Broker>(options_json); }
void wc_server_free(wc_server* server) {
  if (server == nullptr || require_owner(server) != WC_OK) return;
  if (server->phase.load() == Phase::running || server->serving) {
    fail(WC_ERROR_STATE, "the server runs: stop it, and wait until wc_server_run has returned");
    return;
  }
  delete server;
}

int wc_server_log(wc_server* server, wc_log_function log, void* user) {
  if (const int status = require_owner_before_run(server); status != WC_OK) return status;
  server->log.set(log, user);
  return WC_OK;
}

int wc_server_add(wc_server* server, const wc_method* method) {
  if (const int status = require_before_run(server); status != WC_OK) return status;
  return guarded([=] {
    wirecall::c::MethodDescription described{method};
    described.added(server->registry->add(described.name(), described.params(), described.bind()));
  });
}

int wc_server_method(wc_server* server, const char* name, wc_handler handler, void* user) {
  wc_method method{};
  method.size = sizeof method;
  method.name = name;
  method.handler = handler;
  method.user = user;
  return wc_server_add(server, &method);
}

int wc_server_listen(wc_server* server, const char* uri) {
  if (const int status = require_owner_before_run(server); status != WC_OK) return status;
  if (uri == nullptr) return wirecall::c::fail_null();
  return guarded([=] {
    std::string& endpoint = server->endpoints.emplace_back();
    try {
      endpoint = server->server->listen(wirecall::c::view_of(uri)).uri();
    } catch (...) {
      server->endpoints.pop_back();
      throw;
    }
  });
}

const char* wc_server_endpoint(wc_server* server, size_t index) {
  if (require_owner(server) != WC_OK || index >= server->endpoints.size()) return nullptr;
  return server->endpoints[index].c_str();
}

int wc_server_run(wc_server* server) { return run(server, wirecall::OnSignals::stop); }
int wc_server_run_without_signals(wc_server* server) { return run(server, wirecall::OnSignals::leave); }
void wc_server_stop(wc_server* server) {
  if (require_owner(server) == WC_OK) server->server->stop();
}

int wc_server_handle(wc_server* server, const char* message, size_t size, const char** reply, size_t* reply_size) {
  if (const int status = require_owner(server); status != WC_OK) return status;
  if (message == nullptr || reply == nullptr || reply_size == nullptr) return wirecall::c::fail_null();
  *reply = "";
  *reply_size = 0;
  if (server->phase.load() == Phase::running) return fail(WC_ERROR_STATE, "the server runs");
  if (server->serving) return fail(WC_ERROR_STATE, "the server handles a message already");
  server->serving = true;
  const int status = guarded([=] {
    server->request.clear();
    server->request.append({message, size});
    server->registry->handle_padded(server->request.padded(), server->reply);
    *server->reply.reserve(1) = '\0';
    *reply = server->reply.data();
    *reply_size = server->reply.size();
  });
  server->serving = false;
  return status;
}
