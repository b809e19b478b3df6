// See heartbeat.hpp.
#include "cluster/heartbeat.hpp"

#include <limits>

#include "cluster/hexadecimal.hpp"
#include "cluster/subjects.hpp"
#include "wirecall/error.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cluster {

constexpr std::size_t kHeartbeatBytesMax = 4096;

std::string write_heartbeat(const Heartbeat& heartbeat) {
  Value value{{"node", heartbeat.node},
              {"epoch", hexadecimal(heartbeat.epoch)},
              {"version", heartbeat.version},
              {"load", heartbeat.load},
              {"draining", heartbeat.draining}};
  if (heartbeat.retained) value["retained"] = hexadecimal(*heartbeat.retained);
  return value.dump();
}

static std::optional<std::uint32_t> number_of(const Value& object, std::string_view name) {
  const Value* const value = object.find(name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const std::uint64_t number = value->as_uint();
  if (number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

std::optional<Heartbeat> read_heartbeat(std::string_view json) try {
  if (json.size() > kHeartbeatBytesMax) return std::nullopt;
  const auto parsed = Value::parse(json);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const Value* const node = parsed->find("node");
  const Value* const epoch = parsed->find("epoch");
  const auto version = number_of(*parsed, "version");
  if (node == nullptr || !node->is_string() || epoch == nullptr || !epoch->is_string() || !version) return std::nullopt;
  Heartbeat heartbeat{.node = node->as_string(), .version = *version};
  const std::optional<std::uint64_t> number = read_hexadecimal(epoch->as_string());
  if (!number || *number == 0) return std::nullopt;
  heartbeat.epoch = *number;
  if (!is_word(heartbeat.node)) return std::nullopt;
  heartbeat.load = number_of(*parsed, "load").value_or(0);
  const Value* const draining = parsed->find("draining");
  heartbeat.draining = draining != nullptr && draining->is_bool() && draining->as_bool();
  const Value* const retained = parsed->find("retained");
  if (retained != nullptr && retained->is_string()) heartbeat.retained = read_hexadecimal(retained->as_string());
  return heartbeat;
} catch (const Error&) {
  return std::nullopt;  // a number that is none of ours
}

}  // namespace wirecall::cluster
