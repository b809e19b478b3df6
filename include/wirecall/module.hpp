// Module: a shared library whose methods this program calls in its own process (docs/c.md "Modules"). The library is
// written against wirecall.h alone, in any language that can export a C symbol. A program links wirecall::module, since
// what it loads takes the functions of wirecall.h from it.
#pragma once

#include <memory>
#include <string>

#include "wirecall/client.hpp"
#include "wirecall/options.hpp"

namespace wirecall {

class Server;

/// Has the module at `path` add its methods to a server, before that runs. The path has a slash, and comes from whoever
/// runs the program: a module can do all that the program can. It is never unloaded. Throws std::invalid_argument,
/// whose text has the cause and a fix: for a path without a slash, a file that cannot be opened, one that somebody else
/// than root and this user could write or replace (docs/c.md), another file than was loaded from that path before, a
/// library that cannot be loaded or exports no `wirecall_module`, one for a newer wirecall.h, one that refuses, and one
/// with a method that the server has.
void load_module(Server& server, const std::string& path);

namespace detail {

/// A server for the methods of one module, with a thread that runs it. Not for users.
class ModuleHost {
 public:
  ModuleHost(const std::string& path, const ClientOptions& options);
  ModuleHost(ModuleHost&&) noexcept;
  ModuleHost& operator=(ModuleHost&&) noexcept;
  ~ModuleHost();
  [[nodiscard]] const std::string& uri() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

/// A client of the methods of one module, with all that a client has:
///     wirecall::Module math{"./libmath.so"};
///     int sum = math.call<int>("math.add", 2, 3);
/// Its handlers run one at a time, on a thread of their own, and as Client says for its functions.
class Module : private detail::ModuleHost, public Client {
 public:
  /// Loads the module. Throws as `load_module`, and as the constructor of Client for options. What the module logs goes
  /// to the log of `options`.
  explicit Module(const std::string& path, ClientOptions options = {})
      : ModuleHost(path, options), Client(uri(), std::move(options)) {}
};

}  // namespace wirecall
