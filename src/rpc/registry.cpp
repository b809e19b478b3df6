// The table of methods, and serving it without a socket.
#include "wirecall/registry.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/dotted_name.hpp"
#include "base/edit_distance.hpp"
#include "base/reserve_extra.hpp"
#include "base/short_names.hpp"
#include "message/explain.hpp"
#include "rpc/access.hpp"
#include "rpc/cached_method.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/detail/batch_counts.hpp"
#include "wirecall/packing.hpp"

namespace wirecall {

// The first and last eight bytes and the size. Names are ours, not a peer's, so a peer cannot choose collisions; it
// only has to be fast, and names that differ in their middle alone are compared in full anyway.
[[gnu::always_inline]] static inline std::uint64_t hash_of(std::string_view name) noexcept {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  const char* p = name.data();
  const std::size_t size = name.size();
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (size >= 8) {
    std::memcpy(&first, p, 8);
    std::memcpy(&last, p + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(&first, p, 4);
    std::memcpy(&last, p + size - 4, 4);
  } else {
    for (std::size_t i = 0; i < size; ++i) first = first << 8 | static_cast<unsigned char>(p[i]);
  }
  const std::uint64_t hash = (first ^ std::rotl(last, 23) ^ size) * kFactor;
  return hash ^ hash >> 32;
}

static void check_name(std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    throw std::invalid_argument("wirecall: method name \"" + std::string{name} + "\" " + std::string{why});
  };
  if (name.empty() || name.size() > kNameBytesMax) refuse("must have 1 to 255 bytes");
  if (name.starts_with("rpc.") || name.starts_with("$/")) refuse("begins with rpc. or $/, which are reserved");
  if (name.front() == '.' || name.back() == '.' || name.find("..") != name.npos) refuse("has an empty word");
  for (const char c : name) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7F || c == '*' || c == '>')
      refuse("holds white space, a control byte, * or >");
  }
  try {
    static_cast<void>(to_json(name));
  } catch (const Error&) {
    refuse("is not UTF-8");
  }
}

void Param::set_default(std::string json) {
  default_ = std::move(json);
  default_bytes_ = default_.size();
  default_.append(kPaddingBytes, '\0');
}

Method::Method(std::string name, std::vector<Param> params, detail::Binding binding)
    : name_(std::move(name)), params_(std::move(params)), binding_(std::move(binding)) {
  const auto arguments = binding_.signature->arguments;
  const std::size_t named = static_cast<std::size_t>(
      std::count_if(arguments.begin(), arguments.end(), [](const auto& argument) { return !argument.gathers(); }));
  if (params_.size() > named) {
    throw std::invalid_argument("wirecall: method " + name_ + " has " + std::to_string(named) + " parameters, but " +
                                std::to_string(params_.size()) + " names are given");
  }
  for (std::size_t i = params_.size(); i < named; ++i) params_.emplace_back("arg" + std::to_string(i));
  for (std::size_t i = 0; i < named; ++i) {
    if (const std::string_view json = params_[i].default_json(); !json.empty()) {
      const std::unique_ptr<Reader> reader = json_codec().reader();
      reader->reset(json);
      if (!arguments[i].accepts(*reader)) {
        throw std::invalid_argument("wirecall: method " + name_ + ": the default " + std::string{json} + " of " +
                                    params_[i].name() + " is not what it takes: " + describe(*arguments[i].type));
      }
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (params_[i].name() == params_[j].name())
        throw std::invalid_argument("wirecall: method " + name_ + " names two parameters " + params_[i].name());
    }
  }
}

Method& Method::packed(const detail::Packing& packing) & {
  if (packing.signature != binding_.signature)
    throw std::invalid_argument("wirecall: the packing that is given for method " + name_ + " is of another function");
  if (keeps_results_)
    throw std::invalid_argument("wirecall: the results of method " + name_ + " are kept, so it cannot be packed");
  packing_ = &packing;
  return *this;
}

// ---- the table ----

namespace {

// The sink of handle(): one message, or nothing.
class TextSink final : public rpc::MessageSink {
 public:
  Buffer& open_message() override { return *out; }
  void close_message() override {}
  void discard_message() noexcept override { out->clear(); }
  void lose_answer() noexcept override { lost = true; }

  Buffer* out = nullptr;
  bool lost = false;
};

// Says that the engine is in use, also when serving throws.
class Serving {
 public:
  explicit Serving(bool& flag) noexcept : flag_(flag) { flag_ = true; }
  ~Serving() { flag_ = false; }
  Serving(Serving&&) = delete;

 private:
  bool& flag_;
};

// What serves one text at a time.
struct Engine {
  Engine(const Registry& registry, const Limits& limits, const LogSink& log)
      : loop_context(json_codec(), nullptr, &log), dispatcher(registry, sink, limits, loop_context) {}

  [[gnu::always_inline]] void serve(std::string_view text, const Limits& limits, Buffer& out) {
    sink.out = &out;
    sink.lost = false;
    Received message;
    if (text.size() > limits.max_message_size) [[unlikely]]
      return dispatcher.refuse_size();
    const Scan scan = read_message(text, limits, true, message, *loop_context.codecs.elements);
    if (scan.status != ScanStatus::complete) [[unlikely]]
      return dispatcher.refuse_syntax(scan.status, message::unreadable_at(text, scan.offset));
    if (message.kind == MessageKind::response) [[unlikely]]
      return;
    try {
      dispatcher.handle(message, *loop_context.codecs.elements);
    } catch (...) {
      // Without memory: who waits must not answer into another message's reply.
      if (dispatcher.in_flight() != 0) stop();
      out.clear();
      throw;
    }
    if (dispatcher.in_flight() != 0) [[unlikely]]
      stop();
    if (sink.lost) [[unlikely]] {
      out.clear();
      throw std::bad_alloc{};
    }
  }
  // Nothing here can wait: what did not finish is asked to stop, and what then still waits is destroyed, whereupon its
  // sink answers -32603. So do those that somebody else holds, before they could answer into another message's reply.
  void stop() {
    dispatcher.ask_to_stop();
    if (dispatcher.in_flight() == 0) return;
    loop_context.write_log(LogLevel::error, "a handler waits, but Registry::handle cannot: serve it from a loop");
    loop_context.tasks.destroy_all();
    dispatcher.end_calls(Error{ErrorCode::internal_error});
  }

  TextSink sink;
  rpc::LoopContext loop_context;
  rpc::Dispatcher dispatcher;
};

[[gnu::noinline]] void serve_within(const Registry& registry, const Limits& limits, const LogSink& log,
                                    std::string_view text, Buffer& out) {
  Engine{registry, limits, log}.serve(text, limits, out);
}

}  // namespace

struct Registry::Impl {
  struct Slot {
    std::uint64_t hash = 0;
    const Method* method = nullptr;
  };

  // From then on nothing fails.
  void reserve_one() {
    reserve_extra(methods, 1);
    if (2 * (methods.size() + 1) <= table.size()) return;
    table.assign(4 * table.size(), {});
    for (const auto& known : methods) insert(*known);
  }
  void insert(const Method& method) noexcept {
    const std::uint64_t hash = hash_of(method.name());
    std::size_t at = hash & (table.size() - 1);
    while (table[at].method != nullptr) at = (at + 1) & (table.size() - 1);
    table[at] = {hash, &method};
  }

  const Method* find_slowly(std::string_view name, std::uint64_t hash) const noexcept;

  std::vector<std::unique_ptr<Method>> methods;
  std::vector<std::unique_ptr<Method>> removed;       // calls of theirs may be in progress
  std::vector<std::unique_ptr<SpelledName>> spelled;  // one for each method
  SpelledNames spelled_names;
  std::vector<Slot> table{16};  // open addressing, a power of two, at most half full
  std::vector<Middleware> middleware;
  std::vector<std::string> required;

  // For handle().
  Limits limits;
  LogSink log;
  std::unique_ptr<Engine> engine;
  const Registry* engine_of = nullptr;  // a registry that was moved needs a new one
  bool serving = false;
  Buffer padded;
  Buffer text_out;
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;
Registry::Registry(Registry&&) noexcept = default;
Registry& Registry::operator=(Registry&&) noexcept = default;

void Registry::require_name(std::string_view name) { check_name(name); }

Method& Registry::add(std::string name, std::vector<Param> params, detail::Binding binding) {
  check_name(name);
  if (find(name) != nullptr) {
    throw Error{ErrorCode::conflict, "method " + name + " is registered already"};
  }
  auto method = std::make_unique<Method>(std::move(name), std::move(params), std::move(binding));
  impl_->reserve_one();
  reserve_extra(impl_->spelled, 1);
  auto spelled = std::make_unique<SpelledName>(SpelledName{.name = method->name()});
  impl_->spelled_names.add(*spelled);
  impl_->spelled.push_back(std::move(spelled));
  impl_->insert(*method);
  method->index_ = impl_->methods.size();
  impl_->methods.push_back(std::move(method));
  return *impl_->methods.back();
}

Method& Registry::add_cached(std::string name, MethodOptions options, detail::Binding binding,
                             detail::WriteCacheKey write_key) {
  if (binding.signature->stream)
    throw std::invalid_argument("wirecall: method " + name + " gives a stream, and a stream's results are not cached");
  const std::uint32_t concurrency = binding.concurrency;
  const std::shared_ptr<detail::BatchCounts> batches = binding.batches;
  Method inner{name, options.params, std::move(binding)};
  inner.keeps_results_ = true;
  auto cached = std::make_unique<rpc::CachedMethod>(std::move(inner), write_key, options.cache);
  detail::Binding outer = rpc::CachedMethod::bind(std::move(cached));
  outer.concurrency = concurrency;
  outer.batches = batches;
  Method& added = add(std::move(name), std::move(options.params), std::move(outer));
  added.keeps_results_ = true;
  return added;
}

bool Registry::remove(std::string_view name) {
  Impl& impl = *impl_;
  const auto found =
      std::ranges::find(impl.methods, name, [](const auto& method) { return std::string_view{method->name()}; });
  if (found == impl.methods.end()) return false;
  reserve_extra(impl.removed, 1);
  const auto spelled = impl.spelled.begin() + (found - impl.methods.begin());
  impl.spelled_names.remove(**spelled);
  impl.spelled.erase(spelled);
  impl.removed.push_back(std::move(*found));
  impl.methods.erase(found);
  std::ranges::fill(impl.table, Impl::Slot{});
  for (std::size_t at = 0; at < impl.methods.size(); ++at) {
    impl.methods[at]->index_ = at;
    impl.insert(*impl.methods[at]);
  }
  return true;
}

void Registry::require(std::string name) {
  check_name(name);
  if (std::ranges::find(impl_->required, name) == impl_->required.end()) impl_->required.push_back(std::move(name));
}

std::vector<std::string> Registry::missing() const {
  std::vector<std::string> names;
  std::ranges::copy_if(impl_->required, std::back_inserter(names),
                       [this](const std::string& name) { return find(name) == nullptr; });
  return names;
}

void Registry::end_batch_waits() const noexcept {
  for (const auto* const methods : {&impl_->methods, &impl_->removed}) {
    for (const auto& method : *methods) {
      if (method->batches() != nullptr) method->batches()->leave_now();
    }
  }
}

void Registry::use(Middleware middleware) { impl_->middleware.push_back(std::move(middleware)); }

const Method* Registry::find(std::string_view name) const noexcept {
  const Impl& impl = *impl_;
  const std::uint64_t hash = hash_of(name);
  const Impl::Slot& slot = impl.table[hash & (impl.table.size() - 1)];
  if (slot.hash == hash && slot.method != nullptr && same_short_name(slot.method->name(), name)) [[likely]]
    return slot.method;
  return impl.find_slowly(name, hash);
}

// Out of line, so that the first look needs no stack frame.
[[gnu::noinline]] const Method* Registry::Impl::find_slowly(std::string_view name, std::uint64_t hash) const noexcept {
  for (std::size_t at = hash & (table.size() - 1);; at = (at + 1) & (table.size() - 1)) {
    const Slot& slot = table[at];
    if (slot.method == nullptr) return nullptr;
    if (slot.hash == hash && slot.method->name() == name) return slot.method;
  }
}

std::string_view Registry::nearest(std::string_view name, const Principal* principal) const noexcept {
  return impl_->spelled_names.nearest(name, [&](std::string_view known) { return rpc::may_call(principal, known); });
}

const std::vector<std::unique_ptr<Method>>& Registry::methods() const noexcept { return impl_->methods; }
const std::vector<Middleware>& Registry::middleware() const noexcept { return impl_->middleware; }
void Registry::set_limits(const Limits& limits) {
  require_valid(limits);
  impl_->limits = limits;
}
void Registry::set_log(LogSink log) { impl_->log = std::move(log); }

// ---- text in, text out ----

void Registry::handle_padded(std::string_view text, Buffer& out) {
  Impl& impl = *impl_;
  out.clear();
  // A handler may call handle() itself: the inner call then brings an engine of its own.
  if (impl.serving) [[unlikely]]
    return serve_within(*this, impl.limits, impl.log, text, out);
  if (!impl.engine || impl.engine_of != this) [[unlikely]] {
    impl.engine = std::make_unique<Engine>(*this, impl.limits, impl.log);
    impl.engine_of = this;
  }
  const Serving serving{impl.serving};
  impl.engine->serve(text, impl.limits, out);
}

void Registry::handle(std::string_view text, Buffer& out) {
  // The scanner needs readable bytes behind the text. The buffer is taken while it is in use: handle is re-entrant.
  Buffer padded = std::move(impl_->padded);
  padded.clear();
  padded.append(text);
  handle_padded(padded.padded(), out);
  impl_->padded = std::move(padded);
}

void Registry::handle(std::string_view text, std::string& out) {
  Buffer buffer = std::move(impl_->text_out);
  handle(text, buffer);
  out.assign(buffer.view());
  impl_->text_out = std::move(buffer);
}

std::string Registry::handle(std::string_view text) {
  std::string out;
  handle(text, out);
  return out;
}

}  // namespace wirecall
