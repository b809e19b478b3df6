// Services of a .proto as methods "package.Service.Method". Their params are the request: an object is the message
// itself, an array has it as its one element.
//
// add_service serves a class that implements a generated service (option cc_generic_services = true). Service needs no
// generated service: it finds the descriptor, and takes functions and coroutines, whose types it checks:
//     wirecall::protobuf::Service service{server, "echo.EchoService"};
//     service.method("Echo", [](echo::EchoRequest request) -> wirecall::Task<echo::EchoResponse> { … });
// At a broker a client provides a service: add_service(client, service), or ProvidedService.
// Thread: the server's, before it runs.
#pragma once

#include <concepts>
#include <google/protobuf/service.h>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "wirecall/client.hpp"
#include "wirecall/protobuf/message_json.hpp"
#include "wirecall/server.hpp"

namespace wirecall::protobuf {

struct ServiceOptions {
  /// Whether its methods block: they wait for stubs without a closure, files, locks. They then run on the server's pool
  /// (wirecall::blocking), several at once.
  bool blocking = false;
};

/// Serves all methods of `service`, which outlives the server. Its methods are given a Controller. Their closure may be
/// run later, once, and on any thread; a method that throws (its call is answered as that of any handler that throws)
/// must not have it run. Throws Error -32007 for a name that is taken.
void add_service(Registry& registry, google::protobuf::Service& service, ServiceOptions options = {});
inline void add_service(Server& server, google::protobuf::Service& service, ServiceOptions options = {}) {
  add_service(server.registry(), service, options);
}
/// Provides all methods of `service`, which outlives the client, to the other clients of a broker, each as `provided`
/// says; `provided.params` is not used. The methods run on the thread that drives the client, those that block on its
/// pool. Returns and throws as Client::provide; where it throws, methods in front of that one are provided.
void add_service(Client& client, google::protobuf::Service& service, ProvideOptions provided = {},
                 ServiceOptions options = {});

namespace detail {

/// The types of one method, as its signature shows them.
struct MethodTypes;

/// A message as all of a call's params.
template <class M>
struct Whole {
  M message;
};
bool read_whole(std::string_view params, Reader& reader, google::protobuf::Message& out);

// Found by the name lookup of detail/bind.hpp, and more specialised than what is there.
template <class M>
bool decode_arguments(std::string_view params, const Method&, wirecall::detail::ParamReaders& readers,
                      std::tuple<Whole<M>>& arguments) {
  return read_whole(params, *readers.reader, std::get<0>(arguments).message);
}

/// What a method's function takes and returns.
template <class F>
struct HandlerShape;
template <class R, class Q>
struct HandlerShape<R(Q)> {
  using Request = std::remove_cvref_t<Q>;
  using Result = R;
  static constexpr bool kTakesInput = false;
  template <class F>
  static auto wrap(F function, std::shared_ptr<const MethodTypes> types) {
    return [function = std::move(function), types = std::move(types)](Whole<Request>&& whole) mutable -> R {
      return function(static_cast<Request&&>(whole.message));
    };
  }
};
template <class R, class C, class Q>
  requires std::is_same_v<std::remove_cvref_t<C>, Context>
struct HandlerShape<R(C, Q)> {
  using Request = std::remove_cvref_t<Q>;
  using Result = R;
  static constexpr bool kTakesInput = false;
  template <class F>
  static auto wrap(F function, std::shared_ptr<const MethodTypes> types) {
    return [function = std::move(function), types = std::move(types)](Context context,
                                                                      Whole<Request>&& whole) mutable -> R {
      return function(std::move(context), static_cast<Request&&>(whole.message));
    };
  }
};

/// To which the caller streams: its messages are items, and there are no params.
template <class R, class M>
struct HandlerShape<R(InputStream<M>)> {
  using Request = M;
  using Result = R;
  static constexpr bool kTakesInput = true;
  template <class F>
  static auto wrap(F function, std::shared_ptr<const MethodTypes> types) {
    return [function = std::move(function), types = std::move(types)](InputStream<M> messages) mutable -> R {
      return function(std::move(messages));
    };
  }
};
template <class R, class C, class M>
  requires std::is_same_v<std::remove_cvref_t<C>, Context>
struct HandlerShape<R(C, InputStream<M>)> {
  using Request = M;
  using Result = R;
  static constexpr bool kTakesInput = true;
  template <class F>
  static auto wrap(F function, std::shared_ptr<const MethodTypes> types) {
    return [function = std::move(function), types = std::move(types)](Context context,
                                                                      InputStream<M> messages) mutable -> R {
      return function(std::move(context), std::move(messages));
    };
  }
};

template <class T>
struct ItemOf {
  using type = T;
};
template <class T>
struct ItemOf<std::vector<T>> {
  using type = T;
};

}  // namespace detail

namespace detail {

/// One method of a service, ready to be added or provided.
struct ServiceMethod {
  std::string name;
  std::vector<Param> params;
  wirecall::detail::Binding binding;
};

/// The descriptor of a service, against which functions are checked.
class ServiceTypes {
 public:
  explicit ServiceTypes(std::string_view full_name);

  [[nodiscard]] std::vector<std::string> method_names() const;
  template <class F>
  [[nodiscard]] ServiceMethod bind(std::string_view name, F&& function) const {
    return bind(name, std::forward<F>(function), [](auto wrapped) { return wrapped; });
  }
  template <class F>
  [[nodiscard]] ServiceMethod bind(std::string_view name, wirecall::detail::Blocking<F> function) const {
    return bind(name, std::move(function.function), [](auto wrapped) { return blocking(std::move(wrapped)); });
  }

 private:
  using Types = std::shared_ptr<MethodTypes>;
  struct Streams {
    bool input;
    bool output;
  };

  template <class F, class Wrap>
  ServiceMethod bind(std::string_view name, F&& function, Wrap wrap) const {
    using Stored = std::decay_t<F>;
    using Shape = HandlerShape<typename wirecall::detail::FunctionType<Stored>::type>;
    using Plain =
        std::remove_cvref_t<typename wirecall::detail::ResultOf<std::remove_cvref_t<typename Shape::Result>>::type>;
    using Response = typename ItemOf<Plain>::type;
    static_assert(std::derived_from<typename Shape::Request, google::protobuf::Message> &&
                      std::derived_from<Response, google::protobuf::Message>,
                  "wirecall: a method of a protobuf service takes a message and returns one");
    Types types =
        types_of(name, *Shape::Request::descriptor(), *Response::descriptor(),
                 {.input = Shape::kTakesInput, .output = wirecall::detail::is_stream<typename Shape::Result>});
    return described(*types, wirecall::detail::bind(wrap(Shape::wrap(Stored(std::forward<F>(function)), types))));
  }
  [[nodiscard]] Types types_of(std::string_view name, const google::protobuf::Descriptor& request,
                               const google::protobuf::Descriptor& response, Streams streams) const;
  [[nodiscard]] static ServiceMethod described(MethodTypes& types, wirecall::detail::Binding binding);

  const google::protobuf::ServiceDescriptor* service_;
};

}  // namespace detail

class Service {
 public:
  /// The service of that full name, whose .proto is linked into the program. Throws std::invalid_argument where there
  /// is none. From now on the registry requires its methods: Server::listen names those that are missing.
  Service(Registry& registry, std::string_view full_name);
  Service(Server& server, std::string_view full_name) : Service(server.registry(), full_name) {}

  /// Adds a function, lambda or coroutine that takes the request, after a Context if it wants one, and returns the
  /// response: a message, a Task or an expected of one, or, where the .proto says that the method streams its
  /// responses, a Stream. Where the .proto says that its caller streams, it takes an InputStream of messages; the call
  /// has no params then (docs/protobuf.md). With wirecall::blocking(function) it runs on the server's pool. Throws
  /// std::invalid_argument for a method that the service has not, and for messages and streams of others than the
  /// method's; Error -32007 for one that has been added.
  template <class F>
  Method& method(std::string_view name, F&& function) {
    detail::ServiceMethod bound = types_.bind(name, std::forward<F>(function));
    return registry_->add(std::move(bound.name), std::move(bound.params), std::move(bound.binding));
  }

 private:
  Registry* registry_;
  detail::ServiceTypes types_;
};

/// The same of a client at a broker, for whose other clients it provides the service's methods.
/// Thread: the one that may call the client's `provide`.
class ProvidedService {
 public:
  /// `client` outlives it. Throws std::invalid_argument as Service.
  ProvidedService(Client& client, std::string_view full_name) : client_(&client), types_(full_name) {}

  /// Provides a function as Service::method takes it; `options.params` is not used. Returns and throws as
  /// Client::provide, and std::invalid_argument as Service::method. With wirecall::blocking(function) it runs on the
  /// client's pool.
  template <class F>
  void method(std::string_view name, F&& function, ProvideOptions options = {}) {
    detail::ServiceMethod bound = types_.bind(name, std::forward<F>(function));
    options.params = std::move(bound.params);
    client_->provide(std::move(bound.name), std::move(bound.binding), options);
  }

 private:
  Client* client_;
  detail::ServiceTypes types_;
};

}  // namespace wirecall::protobuf

template <class M>
struct wirecall::Adapt<wirecall::protobuf::detail::Whole<M>> {
  static bool decode(Reader& reader, protobuf::detail::Whole<M>& out) { return protobuf::read(reader, out.message); }
};
