// What a LayoutPacker knows of its layout; how it packs is in layout_pack.cpp, how it unpacks in layout_unpack.cpp.
#include "wirecall/layout_packer.hpp"

#include "codec/layout_tree.hpp"

namespace wirecall {

LayoutPacker::LayoutPacker(std::string_view layout) : tree_(std::make_unique<codec::LayoutTree>(layout)) {}
LayoutPacker::LayoutPacker(LayoutPacker&&) noexcept = default;
LayoutPacker& LayoutPacker::operator=(LayoutPacker&&) noexcept = default;
LayoutPacker::~LayoutPacker() = default;

std::string_view LayoutPacker::text() const noexcept { return tree_->layout().text(); }

std::optional<std::size_t> LayoutPacker::tuple_size() const noexcept {
  const codec::LayoutNode& root = tree_->root();
  return root.kind == codec::LayoutNode::Kind::tuple ? std::optional{root.parts.size()} : std::nullopt;
}

bool LayoutPacker::is_optional(std::size_t position) const noexcept {
  return tree_->root().parts[position]->kind == codec::LayoutNode::Kind::optional;
}

}  // namespace wirecall
