// The types that an Any may name: those that a program has registered, and those that are linked into it.
//
// The pool of linked types remembers each name for which it has been asked in vain, for good: a peer could fill the
// memory with names. So their names are listed once, when the first Any comes, and the pool is asked for these alone.
#include <google/protobuf/descriptor_database.h>
#include <map>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "protobuf/message_forms.hpp"
#include "wirecall/protobuf/message_json.hpp"

namespace wirecall::protobuf {
namespace {

using google::protobuf::DescriptorPool;

struct Registered {
  std::mutex mutex;
  std::map<std::string, const Message*, std::less<>> prototypes;
};

// Of the process, as the types that protobuf links into it are. Never destroyed: messages are read until the end.
Registered& registered() {
  static Registered& all = *new Registered;
  return all;
}

const std::unordered_set<std::string>& linked_names() {
  static const std::unordered_set<std::string>& names = *[] {
    // The database sorts its index when the pool first asks it, under the pool's lock; from then on it only reads.
    static_cast<void>(DescriptorPool::generated_pool()->FindFileByName("wirecall/no_such_file.proto"));
    std::vector<std::string> listed;
    DescriptorPool::internal_generated_database()->FindAllMessageNames(&listed);
    return new std::unordered_set<std::string>{listed.begin(), listed.end()};
  }();
  return names;
}

}  // namespace

void register_type(const Message& prototype) {
  const std::lock_guard lock{registered().mutex};
  registered().prototypes.insert_or_assign(prototype.GetDescriptor()->full_name(), &prototype);
}

const Message* find_prototype(std::string_view type_url) {
  const std::size_t slash = type_url.rfind('/');
  if (slash == std::string_view::npos) return nullptr;
  const std::string_view name = type_url.substr(slash + 1);
  {
    const std::lock_guard lock{registered().mutex};
    const auto found = registered().prototypes.find(name);
    if (found != registered().prototypes.end()) return found->second;
  }
  const std::string linked{name};
  if (!linked_names().contains(linked)) return nullptr;
  const Descriptor* const type = DescriptorPool::generated_pool()->FindMessageTypeByName(linked);
  return type == nullptr ? nullptr : google::protobuf::MessageFactory::generated_factory()->GetPrototype(type);
}

}  // namespace wirecall::protobuf
