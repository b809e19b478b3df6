// Options out of JSON, and the check of options that a program has made. What there is to know of each option is in
// option_rows.
#include "wirecall/options.hpp"

#include <algorithm>
#include <stdexcept>

#include "framing/json_text.hpp"
#include "options/rows.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

using net::OptionRow;

template <class T>
class JsonOptions {
 public:
  explicit JsonOptions(std::string_view json) : text_(json) {}

  T read() {
    const std::string_view padded = text_.padded();
    const Scan scan = json_codec().scan(padded, Limits{}.depth);
    const std::size_t behind = padded.find_first_not_of(" \t\r\n", scan.offset);
    if (scan.status != ScanStatus::complete) refuse(scan.offset, "the options are not JSON from here on");
    if (behind != std::string_view::npos) refuse(behind, "something follows the options");
    reader_->reset(padded);
    members({});
    return std::move(options_);
  }

 private:
  static bool is_option(const OptionRow& row) { return net::slot_in<T>(row) != nullptr; }

  /// The members of the object that comes next; `prefix` is the way to it, with a dot at its end.
  void members(const std::string& prefix) {
    const std::size_t at = offset();
    if (!reader_->begin_object()) {
      refuse(at, prefix.empty() ? "options are a JSON object: {\"port\": 9000}"
                                : prefix.substr(0, prefix.size() - 1) + " is a JSON object of options");
    }
    std::string_view name;
    while (reader_->next_member(name)) member(prefix + std::string{name});
  }

  void member(const std::string& name) {
    const std::size_t at = offset();
    const OptionRow* const row = net::find_option(name);
    if (row != nullptr && is_option(*row)) {
      if (std::ranges::find(given_, row) != given_.end()) refuse(at, name + " is given twice");
      given_.push_back(row);
      Value value;
      static_cast<void>(Adapt<Value>::decode(*reader_, value));
      const auto assigned = net::assign(*row, net::slot_in<T>(*row)(options_, *row), value);
      if (!assigned) refuse(at, assigned.error());
      return;
    }
    if (!net::is_group(name, &is_option)) refuse(at, net::unknown_option(name, &is_option));
    members(name + '.');
  }

  [[nodiscard]] std::size_t offset() const { return static_cast<std::size_t>(reader_->mark() - text_.data()); }

  [[noreturn]] void refuse(std::size_t at, const std::string& why) const {
    const std::string_view before = text_.view().substr(0, at);
    const bool one_line = text_.view().find('\n') == std::string_view::npos;
    const auto line = 1 + std::ranges::count(before, '\n');
    throw std::invalid_argument{one_line ? why : "line " + std::to_string(line) + ": " + why};
  }

  Buffer text_;
  std::unique_ptr<Reader> reader_ = json_codec().reader();
  std::vector<const OptionRow*> given_;
  T options_;
};

template <class T>
T checked(T options) {
  require_valid(options);
  return options;
}

template <class T>
void require_each_valid(T options) {
  for (const OptionRow& row : net::option_rows()) {
    const auto in = net::slot_in<T>(row);
    if (in == nullptr) continue;
    const net::OptionSlot value = in(options, row);
    const auto assigned = net::assign(row, value, Value::parse(net::json_of(row, value)).value());
    if (!assigned) throw std::invalid_argument{assigned.error()};
  }
  require_valid(options.limits);
}

}  // namespace

std::vector<std::string> Options::listen_uris() const {
  if (!listen.empty()) return listen;
  const bool v6 = host.find(':') != std::string::npos;
  return {"tcp://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port)};
}

Options Options::from_json(std::string_view json) { return checked(JsonOptions<Options>{json}.read()); }
ClientOptions ClientOptions::from_json(std::string_view json) {
  return checked(JsonOptions<ClientOptions>{json}.read());
}

void require_valid(const Options& options) {
  require_each_valid(options);
  static_cast<void>(framing::JsonTextSettings{options.limits, options.delimiter});
}
void require_valid(const ClientOptions& options) {
  require_each_valid(options);
  if (!options.token.empty() && !is_token(options.token))
    throw std::invalid_argument{"token is not 1 to 4096 visible ASCII characters without white space"};
  if (options.reconnect_min_ms > options.reconnect_max_ms) {
    throw std::invalid_argument{
        out_of_range("reconnect_min_ms", std::to_string(options.reconnect_min_ms),
                     "no more than reconnect_max_ms, which is " + std::to_string(options.reconnect_max_ms))};
  }
  static_cast<void>(framing::JsonTextSettings{options.limits, options.delimiter});
}

}  // namespace wirecall
