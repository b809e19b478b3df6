// `wirecall describe`: what a method is called with and returns.
#include <algorithm>
#include <fmt/core.h>

#include "base/edit_distance.hpp"
#include "base/printable.hpp"
#include "cli/commands/commands.hpp"
#include "cli/files.hpp"
#include "cli/terminal.hpp"
#include "cli/view/members.hpp"
#include "cli/view/schema_text.hpp"
#include "cli/view/table.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {
namespace {

std::string schema_of(const Value& descriptor) {
  const Value* const schema = descriptor.find("schema");
  return schema == nullptr ? "any" : schema_text(*schema);
}

bool is_required(const Value& param) {
  const Value* const required = param.find("required");
  return required != nullptr && required->is_bool() && required->as_bool();
}

/// What is there where it is not given.
std::string otherwise_of(const Value& param) {
  if (is_required(param)) return {};
  const Value* const schema = param.find("schema");
  const Value* const otherwise = schema == nullptr ? nullptr : schema->find("default");
  return otherwise == nullptr ? "optional" : "= " + otherwise->dump();
}

/// Who provides it, as rpc.methods tells.
std::string provided_text(const Value& listed) {
  return fmt::format("Policy {}, {:.0f} {}; {:.0f} calls in flight, {:.0f} waiting", text_of(listed, "policy"),
                     number_of(listed, "providers"), number_of(listed, "providers") == 1 ? "provider" : "providers",
                     number_of(listed, "in_flight"), number_of(listed, "waiting"));
}

const Value* find_named(const Value::Array& methods, std::string_view name) {
  const auto found = std::ranges::find_if(methods, [&](const Value& one) { return text_of(one, "name") == name; });
  return found == methods.end() ? nullptr : &*found;
}

std::string description(const Value& method, const Value* listed) {
  const Value::Array& params = elements_of(method.find("params"));
  std::string names;
  std::string example = "wirecall call " + text_of(method, "name");
  Table table{{"PARAM", "TYPE", "", ""}};
  for (const Value& param : params) {
    const std::string name = text_of(param, "name");
    const bool required = is_required(param);
    names += fmt::format("{}{}{}", names.empty() ? "" : ", ", name, required ? "" : "?");
    if (required) example += fmt::format(" {}=…", name);
    table.add({name, schema_of(param), otherwise_of(param), text_of(param, "description")});
  }
  const Value* const result = method.find("result");
  std::string text = printable(
      fmt::format("{}({}) -> {}", text_of(method, "name"), names, result == nullptr ? "any" : schema_of(*result)));
  text += '\n';
  if (const std::string summary = text_of(method, "summary"); !summary.empty()) text += printable(summary) + '\n';
  if (!table.empty()) text += '\n' + table.text();
  text += '\n';
  if (listed != nullptr) text += printable(provided_text(*listed)) + '\n';
  return text + printable(example) + '\n';
}

class DescribeCommand final : public Command {
 public:
  explicit DescribeCommand(CLI::App& parent)
      : Command(parent, {.name = "describe",
                         .does = "Print the parameters and the result of a method",
                         .usage = "METHOD",
                         .footer = "Examples:\n"
                                   "  wirecall describe subtract\n"
                                   "  wirecall describe gpu.add --json\n\n"}) {
    add_argument("METHOD", method_, "The method's name");
    app().add_flag("--json", json_, "Print the method as OpenRPC describes it");
    add_target_flags("Timeout for connecting and the answers together, as 200ms or 1.5s");
  }

 private:
  int run() override {
    return with_server(target(), [this](RawClient& caller, TimeLeft left) { return describe(caller, left); });
  }
  [[nodiscard]] int describe(RawClient& caller, TimeLeft left) const;
  [[nodiscard]] int refuse(const Value::Array& methods) const;

  std::string method_;
  bool json_ = false;
};

int DescribeCommand::describe(RawClient& caller, TimeLeft left) const {
  const StopAtSignal signal;
  const auto ask = [&](std::string_view method) {
    detail::OutgoingCall call = caller.call(method, {}, signal.token());
    if (left) call.set_timeout(*left);
    return result_of(caller, method, std::move(call), signal);
  };
  const auto discovered = ask("rpc.discover");
  if (!discovered) return discovered.error();
  const Value document = Value::parse(*discovered).value_or(Value{});
  const Value::Array& methods = elements_of(document.find("methods"));
  const Value* const method = find_named(methods, method_);
  if (method == nullptr) return refuse(methods);
  if (json_) return print(method->dump() + '\n');
  const auto answered = ask("rpc.methods");
  if (!answered) return answered.error();
  const Value listed = Value::parse(*answered).value_or(Value{});
  return print(description(*method, find_named(elements_of(&listed), method_)));
}

// As a call of it would be answered.
int DescribeCommand::refuse(const Value::Array& methods) const {
  std::vector<std::string> names;
  for (const Value& one : methods) names.push_back(text_of(one, "name"));
  const std::string_view nearest = nearest_of(method_, names);
  const std::string data = nearest.empty() ? "" : R"({"did_you_mean":)" + to_json(nearest) + "}";
  const Error error = Error::with_data(ErrorCode::method_not_found, data);
  print_error(error);
  return exit_of_answer(error);
}

}  // namespace

std::unique_ptr<Command> describe_command(CLI::App& parent) { return std::make_unique<DescribeCommand>(parent); }

}  // namespace wirecall::cli
