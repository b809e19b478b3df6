// What a node says of the methods that its clients provide: JSON, {"gone": ["gpu.sub"], "set": [[3, {"method":
// "gpu.add"}], …], "all": true}. Of each in `set` there are so many providers, and the object is the params of
// rpc.register; a third element, "process", says that the node's own process provides it, and no client. `all` says
// that the other side knows all of them now. One thread. Implements docs/cluster.md "Methods".
#pragma once

#include <functional>

#include "broker/method_table.hpp"
#include "broker/registrar.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::cluster {

/// Collects one text.
class MethodNewsWriter {
 public:
  /// The route as it is provided by clients of this broker, of whom there are `providers`; 0 for not any more.
  void add(const broker::Route& route, std::uint32_t providers);
  /// A method of the process's own.
  void add_own(const Method& method);
  void add_gone(std::string_view method);
  [[nodiscard]] bool empty() const noexcept { return set_.empty() && gone_.empty(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return set_.size() + gone_.size(); }
  /// `all` says that all is known with it.
  void write(Buffer& out, bool all) const;
  /// Begins a new one.
  void clear() noexcept {
    set_.clear();
    gone_.clear();
  }

 private:
  void begin(std::uint32_t providers, std::string_view method);

  std::string set_;
  std::string gone_;
};

struct MethodNewsHandlers {
  std::function<void(broker::Registration registration)> set;
  std::function<void(std::string_view method)> gone;
};

/// Calls the handlers for each method of the text, which is padded. False for one that is no such text, or of which
/// some elements are none: the others are told all the same. `all` is whether the text says that all is known now.
/// Throws what the handlers throw.
[[nodiscard]] bool read_method_news(std::string_view json, const Codec& codec, const MethodNewsHandlers& handlers,
                                    bool& all);

/// How many clients of this broker provide the route.
[[nodiscard]] std::uint32_t providers_here(const broker::Route& route) noexcept;

}  // namespace wirecall::cluster
