// The functions of wirecall.h for servers and brokers.
#include "c/server.hpp"

#include <memory>
#include <string>

#include "c/entry.hpp"
#include "c/method.hpp"
#include "wirecall/broker.hpp"

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

int no_server() noexcept { return fail(WC_ERROR_ARGUMENT, "there is no server"); }

int run(wc_server* server, wirecall::OnSignals on_signals) noexcept {
  if (server == nullptr) return no_server();
  return guarded([=] { static_cast<void>(server->server->run(on_signals)); });
}

}  // namespace

wc_server* wc_server_new(const char* options_json) { return make<wirecall::Server>(options_json); }
wc_server* wc_broker_new(const char* options_json) { return make<wirecall::Broker>(options_json); }
void wc_server_free(wc_server* server) { delete server; }

int wc_server_log(wc_server* server, wc_log_function log, void* user) {
  if (server == nullptr) return no_server();
  server->log.set(log, user);
  return WC_OK;
}

int wc_server_add(wc_server* server, const wc_method* method) {
  if (server == nullptr) return no_server();
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
  if (server == nullptr) return no_server();
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
  if (server == nullptr || index >= server->endpoints.size()) return nullptr;
  return server->endpoints[index].c_str();
}

int wc_server_run(wc_server* server) { return run(server, wirecall::OnSignals::stop); }
int wc_server_run_without_signals(wc_server* server) { return run(server, wirecall::OnSignals::leave); }
void wc_server_stop(wc_server* server) {
  if (server != nullptr) server->server->stop();
}

int wc_server_handle(wc_server* server, const char* message, size_t size, const char** reply, size_t* reply_size) {
  if (server == nullptr) return no_server();
  if (message == nullptr || reply == nullptr || reply_size == nullptr)
    return fail(WC_ERROR_ARGUMENT, "an argument is NULL");
  *reply = "";
  *reply_size = 0;
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
