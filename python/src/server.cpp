// See server.hpp.
#include "server.hpp"

#include <expected>
#include <fcntl.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <stdexcept>
#include <sys/socket.h>

#include "async_calls.hpp"
#include "batch.hpp"
#include "broker_server/broker_factory.hpp"
#include "cli/config/config_reloader.hpp"
#include "cli/restart/predecessor.hpp"
#include "cli/restart/restart_protocol.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "method.hpp"
#include "rpc/access.hpp"
#include "server/replacement.hpp"
#include "sighup_handler.hpp"
#include "transport/loopback.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/listeners.hpp"
#include "wirecall/log.hpp"
#include "wirecall/server.hpp"

namespace wirecall::python {
namespace nb = nanobind;
namespace {

// How long the server's loops have to answer.
constexpr std::chrono::seconds kRestartTime{5};

Options options_of(const std::string& json) {
  Options options = Options::from_json(json);
  options.log = stderr_log(options.log_format);
  return options;
}

// What the system refuses is an OSError.
template <class F>
auto os_error_for(const F& act) {
  try {
    return act();
  } catch (const std::runtime_error& failure) {
    PyErr_SetString(PyExc_OSError, failure.what());
    throw nb::python_error();
  }
}

runtime::Descriptor duplicate(int descriptor) {
  return runtime::Descriptor{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0), "a socket"};
}

// A descriptor, owned by whoever has this, and where it is bound.
using PassedSocket = std::pair<int, std::string>;

transport::InheritedSockets inherited(const std::vector<PassedSocket>& sockets) {
  std::vector<transport::ListeningSocket> all;
  for (const auto& [descriptor, uri] : sockets)
    all.push_back({.descriptor = runtime::Descriptor{descriptor}, .endpoint = Endpoint{uri}});
  return transport::InheritedSockets{std::move(all)};
}
std::vector<PassedSocket> passed(std::vector<transport::ListeningSocket> sockets) {
  std::vector<PassedSocket> all;
  for (transport::ListeningSocket& one : sockets) all.emplace_back(one.descriptor.release(), one.endpoint.uri());
  return all;
}

// Listens at each endpoint for so many processes, with the sockets that are bound there already; the others are closed.
std::vector<std::unique_ptr<Listeners>> listen_together(const std::vector<std::string>& uris, std::size_t count,
                                                        const std::vector<PassedSocket>& sockets) {
  transport::InheritedSockets left = inherited(sockets);
  std::vector<std::unique_ptr<Listeners>> all;
  for (const std::string& uri : uris) {
    all.push_back(
        os_error_for([&] { return std::make_unique<Listeners>(net::Replacement::listen_together(uri, count, left)); }));
  }
  return all;
}

// As Broker. One whose process takes over from another opens its durable store only then.
struct PyBroker final : Server {
  PyBroker(const Options& options, bool takes_over)
      : Server(options,
               net::broker_factory(options, takes_over ? net::StoreOpens::by_takeover : net::StoreOpens::at_once)) {}
};

class PyServer {
 public:
  PyServer(const std::string& options_json, bool broker, bool takes_over) : calls_(std::make_shared<AsyncCalls>()) {
    const Options options = options_of(options_json);
    if (broker) {
      server_ = std::make_unique<PyBroker>(options, takes_over);
    } else {
      server_ = std::make_unique<Server>(options);
    }
    // For `handle`, which needs no port.
    server_->registry().set_limits(options.limits);
    server_->registry().set_log(options.log);
    options_ = options;
    reload_ = std::make_unique<cli::Reload>(
        *server_, options_, [this] { return loaded(); },
        [this](std::vector<Principal> principals) { return narrowed_anew(std::move(principals)); });
  }
  PyServer(PyServer&&) = delete;
  // The server's threads end with it, and may need the GIL for that.
  ~PyServer() {
    const Released released;
    sighup_.reset();
    reload_.reset();
    if (running_) static_cast<void>(server_.release());
    server_.reset();
  }

  /// `described`: as of _methods.py. `cache`: entries, bytes, and milliseconds to live.
  void add(const std::string& name, nb::object function, nb::tuple described, bool safe,
           std::optional<std::tuple<std::size_t, std::size_t, std::int64_t>> cache) {
    auto method = std::make_unique<PythonMethod>(std::move(function), std::move(described), calls_);
    if (cache && method->takes_context()) {
      throw nb::type_error(
          "wirecall: a cached result is for every caller, so its function cannot take a Context, which "
          "is one caller's; take what the result depends on as a parameter");
    }
    if (cache && method->takes_input())
      throw nb::type_error("wirecall: a cached result depends on params alone, so its function cannot take an input");
    std::vector<Param> params = method->params();
    std::string summary = method->summary();
    detail::Binding binding = PythonMethod::bind(std::move(method));
    Registry& registry = server_->registry();
    Method& added = cache ? registry.add_cached(name,
                                                {.params = std::move(params),
                                                 .cache = {.entries = std::get<0>(*cache),
                                                           .bytes = std::get<1>(*cache),
                                                           .ttl = std::chrono::milliseconds{std::get<2>(*cache)}}},
                                                std::move(binding))
                          : registry.add(name, std::move(params), std::move(binding));
    added.summary(std::move(summary));
    if (safe) added.safe();
  }
  /// `described`: one call. `run`, `weigh` and `bounds` as for bind_batched.
  void add_batched(const std::string& name, nb::object run, nb::object weigh, nb::tuple described, bool safe,
                   const BatchBounds& bounds) {
    auto method = std::make_unique<PythonMethod>(run, std::move(described), calls_);
    std::vector<Param> params = method->params();
    std::string summary = method->summary();
    Method& added = server_->registry().add(
        name, std::move(params), bind_batched(std::move(method), std::move(run), std::move(weigh), bounds, calls_));
    added.summary(std::move(summary));
    if (safe) added.safe();
  }
  /// `names` as of subscription_names.
  void add_subscription(nb::tuple names, nb::object function, nb::tuple described) {
    auto method = std::make_unique<PythonMethod>(std::move(function), std::move(described), calls_);
    std::vector<Param> params = method->params();
    std::string summary = method->summary();
    server_->registry()
        .add_subscription(subscription_names(names), std::move(params),
                          PythonMethod::bind_subscription(std::move(method)))
        .summary(std::move(summary));
  }

  /// From the next run on, a principal may call that method only if `allows(its name)`, a bool, is true.
  void allow(std::string name, nb::object allows) {
    allowed_.push_back({.method = std::move(name), .allows = std::move(allows)});
    is_narrowed_ = false;
  }
  /// Asks that of each principal, before the first call is served. `run` does so as well.
  void narrow() {
    if (is_narrowed_ || allowed_.empty()) return;
    server_->set_principals(narrowed(reload_->principals()));
    is_narrowed_ = true;
  }

  std::string listen(const std::string& uri) {
    return os_error_for([&] { return server_->listen(uri).uri(); });
  }
  /// Where its options say.
  [[nodiscard]] std::vector<std::string> endpoints() const { return options_.listen_uris(); }
  void listen_shared(const Listeners& listeners, std::size_t number) { server_->listen(listeners, number); }

  // Another process takes over from this one, or this one from another (_restart.py).

  /// `listen` takes its sockets from these, each a descriptor and where it is bound, which it owns from now on.
  void inherit(const std::vector<PassedSocket>& sockets) { net::Replacement{*server_}.inherit(inherited(sockets)); }
  /// Before `run`: the files of the sockets are this process's. Those that it has not taken are closed.
  void take_over() {
    net::Replacement replacement{*server_};
    replacement.close_left();
    replacement.begin_to_listen();
    replacement.own_files();
  }
  /// Before that, of a broker: it has the state of the other process's, which `channel`, a socket, brings. Returns why
  /// not; empty where the other one does not serve any more.
  std::string take_over_broker(int channel) {
    const Released released;
    try {
      cli::RestartChannel other{duplicate(channel)};
      const std::string state = other.receive(cli::kRestartStep + cli::kRestartStep, cli::kRestartStateBytesMax).text;
      net::Replacement replacement{*server_};
      replacement.open_store();
      replacement.take_over(state, duplicate(channel));
      cli::take_over(other);
    } catch (const std::exception& failure) {
      return failure.what();
    }
    return {};
  }
  /// While it runs, on another thread: duplicates of its sockets, the caller's.
  [[nodiscard]] std::vector<PassedSocket> share() const {
    const Released released;
    return passed(net::Replacement{*server_}.share(kRestartTime));
  }
  /// Likewise: once a byte is on its way by `channel`, a socket, or at once without one, it accepts nothing more, and
  /// `run` returns once its clients have gone. False where it has ended, does not come to it in time, or the other end
  /// has gone.
  bool hand_over(std::optional<int> channel) {
    const Released released;
    const auto commit = [channel](const std::string&, runtime::Descriptor&) {
      return !channel || ::send(*channel, "1", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
    };
    return net::Replacement{*server_}.hand_over(commit, kRestartTime);
  }
  /// The same of a broker, whose state is sent by `channel`, where the other end is in `take_over_broker`. Returns why
  /// not; empty where the other end serves from now on.
  std::string hand_over_broker(int channel) {
    const Released released;
    std::string failure = "the server ends, or its loop does not answer";
    try {
      cli::RestartChannel other{duplicate(channel)};
      const auto commit = [&](const std::string& state, runtime::Descriptor& link) {
        try {
          other.send(state, cli::kRestartCommit);
          const auto said =
              cli::understood<cli::RestartPrepared>(other.receive(cli::kRestartOpen, cli::kRestartBytesMax));
          if (said.prepared) {
            other.send(to_json(cli::RestartGo{.go = true}), cli::kRestartCommit);
            link = other.release();
            return true;
          }
        } catch (const std::exception& error) {
          failure = error.what();
        }
        return false;
      };
      if (net::Replacement{*server_}.hand_over(commit, kRestartTime)) failure.clear();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    return failure;
  }

  /// "sha256:" and the fingerprint of the certificate that the server has made; empty where it has made none.
  [[nodiscard]] std::string made_certificate() const {
    return options_.tls.self_signed ? "sha256:" + server_->certificate_fingerprint() : std::string{};
  }
  /// As a record of its log, where that is JSON; else false.
  bool log_listening(const std::string& version, const std::string& endpoints, std::int64_t methods,
                     std::int64_t workers) {
    if (options_.log_format != LogFormat::json) return false;
    const bool asks = !options_.principals_file.empty();
    const LogSink log = options_.log.at_least(options_.log_level);
    const LogField version_field{"version", version};
    const LogField name{"name", options_.name};
    const LogField listen{"listen", endpoints};
    const LogField methods_field{"methods", methods};
    const LogField workers_field{"workers", workers};
    const LogField serves{"serves", asks ? "those that principals_file names" : "whoever can connect"};
    constexpr std::string_view kMessage = "the server listens";
    const std::string fingerprint = "sha256:" + server_->certificate_fingerprint();
    if (!options_.tls.on()) {
      log(LogLevel::info, kMessage,
          {version_field, name, listen, methods_field, workers_field, serves, {"tls", "off"}});
    } else {
      log(LogLevel::info, kMessage,
          {version_field,
           name,
           listen,
           methods_field,
           workers_field,
           serves,
           {"tls", "on"},
           {"fingerprint", fingerprint}});
    }
    return true;
  }

  /// From now on SIGHUP reloads the options that may change while it runs. `load()` returns the options as JSON text
  /// and "", or "" and why there are none. `replaces` as for SighupHandler. In the main thread, until `remove_sighup`.
  void install_sighup(nb::object load, bool replaces) {
    narrow();
    load_ = std::move(load);
    sighup_ = std::make_unique<SighupHandler>([this] { (*reload_)(); }, replaces);
  }
  void remove_sighup() {
    {
      const Released released;
      sighup_.reset();
    }
    load_.reset();
  }

  /// False when it was interrupted. `signals`: it ends by SIGINT and SIGTERM, which it takes from Python meanwhile.
  bool run(bool signals) {
    narrow();
    net::Replacement{*server_}.open_store();  // where nothing has had it opened
    running_ = true;
    RunEnd end{};
    {
      const Released released;
      try {
        end = server_->run(signals ? OnSignals::stop : OnSignals::leave);
      } catch (...) {
        running_ = false;
        throw;
      }
    }
    running_ = false;
    return end == RunEnd::drained;
  }
  void stop() noexcept { server_->stop(); }
  void stop_at_once() noexcept { server_->stop_at_once(); }
  std::string handle(const std::string& text) {
    const Released released;
    return server_->registry().handle(text);
  }
  [[nodiscard]] int fileno() const noexcept { return calls_->fileno(); }
  void drain(nb::handle loop) { calls_->drain(loop.ptr()); }

 private:
  struct Allowed {
    std::string method;
    nb::object allows;
  };

  std::vector<Principal> narrowed(std::vector<Principal> principals) const {
    for (const Allowed& one : allowed_) {
      bool anybody = false;
      for (Principal& principal : principals) {
        if (!nb::cast<bool>(one.allows(principal.name))) principal.call.push_back("!" + one.method);
        anybody = anybody || rpc::may_call(&principal, one.method);
      }
      if (!anybody)
        options_.log(LogLevel::warning, "nobody may call a method: no principal is allowed to, and has a grant",
                     {{"method", one.method}});
    }
    return principals;
  }
  // On the thread that SIGHUP wakes.
  std::vector<Principal> narrowed_anew(std::vector<Principal> principals) const {
    const Gil gil;
    try {
      return narrowed(std::move(principals));
    } catch (const std::exception& failure) {
      throw std::runtime_error(failure.what());
    }
  }

  std::expected<Options, std::string> loaded() const {
    const Gil gil;
    try {
      const auto [json, why] = nb::cast<std::pair<std::string, std::string>>(load_());
      if (!why.empty()) return std::unexpected(why);
      return Options::from_json(json);
    } catch (const std::exception& failure) {
      return std::unexpected(std::string{failure.what()});
    }
  }

  std::shared_ptr<AsyncCalls> calls_;
  std::unique_ptr<Server> server_;
  Options options_;
  nb::object load_;  // of the options anew
  std::vector<Allowed> allowed_;
  bool is_narrowed_ = false;  // whether all of these are in the server's principals
  // Made with the server, so that it knows which principals that was given: the file may have others by the next run.
  std::unique_ptr<cli::Reload> reload_;
  std::unique_ptr<SighupHandler> sighup_;
  bool running_ = false;
};

}  // namespace

void add_server(nb::module_& module) {
  nb::class_<Listeners>(module, "Listeners", "An endpoint on which several processes listen together.")
      .def_prop_ro("uri", [](const Listeners& listeners) { return listeners.endpoint().uri(); })
      .def("share", [](const Listeners& listeners) { return passed(net::Replacement::share(listeners)); })
      .def("own_file", &net::Replacement::own_file)
      .def("keep_file", &net::Replacement::keep_file);
  module.def("listen_together", &listen_together);
  module.def("is_local", [](const std::string& uri) { return transport::is_local(Endpoint{uri}); });
  nb::class_<PyServer>(module, "Server")
      .def(nb::init<const std::string&, bool, bool>(), nb::arg("options_json"), nb::arg("broker") = false,
           nb::arg("takes_over") = false)
      .def("add", &PyServer::add, nb::arg("name"), nb::arg("function"), nb::arg("described"), nb::arg("safe"),
           nb::arg("cache").none())
      .def("add_batched", &PyServer::add_batched, nb::arg("name"), nb::arg("run"), nb::arg("weigh").none(),
           nb::arg("described"), nb::arg("safe"), nb::arg("bounds"))
      .def("add_subscription", &PyServer::add_subscription)
      .def("allow", &PyServer::allow, nb::arg("name"), nb::arg("allows"))
      .def("narrow", &PyServer::narrow)
      .def("listen", &PyServer::listen)
      .def("endpoints", &PyServer::endpoints)
      .def("listen_shared", &PyServer::listen_shared)
      .def("inherit", &PyServer::inherit)
      .def("take_over", &PyServer::take_over)
      .def("take_over_broker", &PyServer::take_over_broker)
      .def("share", &PyServer::share)
      .def("hand_over", &PyServer::hand_over, nb::arg("channel").none() = nb::none())
      .def("hand_over_broker", &PyServer::hand_over_broker)
      .def("made_certificate", &PyServer::made_certificate)
      .def("log_listening", &PyServer::log_listening, nb::arg("version"), nb::arg("endpoints"), nb::arg("methods"),
           nb::arg("workers"))
      .def("install_sighup", &PyServer::install_sighup, nb::arg("load"), nb::arg("replaces"))
      .def("remove_sighup", &PyServer::remove_sighup)
      .def("run", &PyServer::run, nb::arg("signals"))
      .def("stop", &PyServer::stop)
      .def("stop_at_once", &PyServer::stop_at_once)
      .def("handle", &PyServer::handle)
      .def("fileno", &PyServer::fileno)
      .def("drain", &PyServer::drain);
}

}  // namespace wirecall::python
