/* Sums of products over windows as convolutions of poplin.
 *
 * An index of the input is `step * i + dilation * p + offset` along a field, where i is the result's index and p the kernel's; of one
 * that is transposed it is `(i - dilation * p + offset) / step` where that is whole. What lies outside the field counts for nothing, or is
 * a zero that is multiplied where the window is `padded`.
 */
#ifndef OPC_POPLAR_CONVOLUTION_H
#define OPC_POPLAR_CONVOLUTION_H

#include <poplar/Graph.hpp>
#include <poplin/Convolution.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "opc/poplar/body.h"

namespace opc {
namespace ipu {

/* What an axis of a factor, or a loop of the result, is to a convolution. */
enum class role { batch, channel, out, field };

/* The role of an axis, its place among those of that role, and whether it has the groups one after the other. */
struct axis_role {
  role what;
  std::size_t place;
  bool grouped;

  axis_role(role what_, std::size_t place_, bool grouped_ = false) : what(what_), place(place_), grouped(grouped_) {}
};

struct window {
  int64_t step, dilation, offset;
  bool transposed, padded;
};

/* A factor of a convolution: a tensor, and what each of its axes is. */
struct factor {
  poplar::Tensor tensor;
  std::vector<axis_role> roles;

  factor(const poplar::Tensor &tensor_, list<axis_role> roles_) : tensor(tensor_), roles(roles_) {}

  /* The axes of the given roles one after the other, that of the groups in front of those of `behind`; `sizes` gets the number of
   * elements of each, the groups' among them. */
  poplar::Tensor arranged(std::size_t groups, list<role> order, role behind, shape &sizes) const {
    shape parts;
    struct entry {
      std::size_t rank, place;
      unsigned axis;
      std::size_t size;
    };
    std::vector<entry> entries;
    const std::size_t of_groups = 2 * static_cast<std::size_t>(std::find(order.begin(), order.end(), behind) - order.begin());
    bool found = false;
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const std::size_t size = tensor.dim(static_cast<unsigned>(i));
      const std::size_t rank = 2 * static_cast<std::size_t>(std::find(order.begin(), order.end(), roles[i].what) - order.begin()) + 1;
      if (roles[i].grouped) {
        entries.push_back({of_groups, 0, static_cast<unsigned>(parts.size()), groups});
        parts.push_back(groups);
        found = true;
      }
      const std::size_t own = roles[i].grouped ? size / groups : size;
      entries.push_back({rank, roles[i].place, static_cast<unsigned>(parts.size()), own});
      parts.push_back(own);
    }
    if (!found) {
      entries.push_back({of_groups, 0, static_cast<unsigned>(parts.size()), 1});
      parts.push_back(1);
    }
    std::sort(entries.begin(), entries.end(), [](const entry &a, const entry &b) {
      return a.rank != b.rank ? a.rank < b.rank : a.place < b.place;
    });
    std::vector<unsigned> axes_in_order;
    sizes.assign(order.size() + 1, 1);
    shape merged(order.size() + 1, 1), fields;
    const std::size_t at_groups = of_groups / 2;
    for (const entry &e : entries) {
      axes_in_order.push_back(e.axis);
      const std::size_t slot = e.rank % 2 == 0 ? at_groups : (e.rank / 2 >= at_groups ? e.rank / 2 + 1 : e.rank / 2);
      merged[slot] *= e.size;
      if (slot == order.size()) fields.push_back(e.size);
    }
    sizes = merged;
    merged.pop_back();
    merged.insert(merged.end(), fields.begin(), fields.end());
    return tensor.reshape(parts).dimShuffle(axes_in_order).reshape(merged);
  }
};

/* A number of a window as poplin has it. */
inline unsigned counted(const char *name, const char *what, int64_t value) {
  if (value <= UINT32_MAX) return static_cast<unsigned>(std::max<int64_t>(value, 0));
  throw poplar::poplar_error(std::string(name) + ": " + what + " is " + std::to_string(value) + ", and convolutions count in 32 bits");
}

/* The convolution of two factors as a value of a stage, whose first loops are the result's, each with its role. */
inline value convolution(body &of, const char *name, factor in, factor kernel, int64_t group_count,
                         list<window> windows, const loops &stage, list<axis_role> result_) {
  if (!in.tensor.valid() || !kernel.tensor.valid()) return absent();
  const std::vector<axis_role> result(result_);
  if (in.tensor.elementType() != kernel.tensor.elementType()) {
    in.tensor = of.in_float(name, in.tensor);
    kernel.tensor = of.in_float(name, kernel.tensor);
  }
  const std::size_t groups = static_cast<std::size_t>(std::max<int64_t>(group_count, 1)), fields = windows.size();
  shape whole(stage.sizes().size(), 1);
  std::copy(stage.sizes().begin(), stage.sizes().begin() + static_cast<std::ptrdiff_t>(result.size()), whole.begin());
  if (points(whole) == 0) return value(of.variable(poplar::FLOAT, whole, name));
  if (kernel.tensor.numElements() == 0) return 0.0f;

  shape in_sizes, kernel_sizes;
  poplar::Tensor x = in.arranged(groups, {role::batch, role::channel, role::field}, role::channel, in_sizes);
  const poplar::Tensor w = kernel.arranged(groups, {role::out, role::channel, role::field}, role::out, kernel_sizes);
  const std::size_t batch = in_sizes[0], channels = in_sizes[2], outs = kernel_sizes[1];

  shape extents(fields);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i].what == role::field) extents[result[i].place] = stage.sizes()[i];
  }
  poplin::ConvParams::InputTransform in_transform(fields), kernel_transform(fields);
  poplin::ConvParams::OutputTransform out_transform(fields);
  shape field_sizes, kernel_field;
  for (std::size_t k = 0; k < fields; ++k) {
    window at = windows.begin()[k];
    const unsigned axis = static_cast<unsigned>(3 + k);
    int64_t size = static_cast<int64_t>(x.dim(axis)), lower, upper;
    const int64_t taps = static_cast<int64_t>(w.dim(axis)), extent_ = static_cast<int64_t>(extents[k]);
    /* Where nothing is one step away, or one tap, these may be any. */
    if (taps == 1) at.dilation = 1;
    if (at.transposed ? size == 1 && !at.padded : extent_ == 1) at.step = 1;
    const int64_t reach = at.dilation * (taps - 1);
    if (at.transposed && at.padded) {
      const int64_t first = -floordiv(reach - at.offset, at.step), last = floordiv(extent_ - 1 + at.offset, at.step);
      lower = std::max<int64_t>(-first, 0);
      x = of.padded(name, x, axis, counted(name, "a padding", lower), counted(name, "a padding", last - (size - 1)));
      size = static_cast<int64_t>(x.dim(axis));
      at.offset += at.step * lower;
    }
    if (at.transposed) {
      lower = reach - at.offset;
      upper = extent_ - 1 + at.offset - at.step * (size - 1);
      in_transform.dilation[k] = counted(name, "a step", at.step);
      kernel_transform.flip[k] = true;
    } else {
      lower = -at.offset;
      upper = at.step * (extent_ - 1) + reach + at.offset - (size - 1);
      out_transform.stride[k] = counted(name, "a step", at.step);
    }
    kernel_transform.dilation[k] = counted(name, "a dilation", at.dilation);
    if (at.padded && !at.transposed) {
      x = of.padded(name, x, axis, counted(name, "a padding", lower), counted(name, "a padding", upper));
    } else {
      in_transform.paddingLower[k] = counted(name, "a padding", lower);
      in_transform.paddingUpper[k] = counted(name, "a padding", upper);
    }
    /* What no window reaches. */
    out_transform.truncationLower[k] = counted(name, "what no window reaches", -lower);
    out_transform.truncationUpper[k] = counted(name, "what no window reaches", -upper);
    field_sizes.push_back(x.dim(axis));
    kernel_field.push_back(static_cast<std::size_t>(taps));
  }
  /* The zeros around a field without elements are multiplied too. */
  if (x.numElements() == 0) return 0.0f;
  const poplin::ConvParams params(x.elementType(), poplar::FLOAT, batch, field_sizes, kernel_field, channels, outs, groups, in_transform,
                                  kernel_transform, out_transform);
  shape x_shape{batch, groups * channels}, w_shape{groups, outs, channels};
  x_shape.insert(x_shape.end(), field_sizes.begin(), field_sizes.end());
  w_shape.insert(w_shape.end(), kernel_field.begin(), kernel_field.end());
  const poplar::DebugContext debug(of.debug(), name);
  const poplar::Tensor y =
      poplin::convolution(of.graph(), x.reshape(x_shape), w.reshape(w_shape), params, false, of.prog(), debug);

  /* Its axes are those of the batch, the channels of each group, and the field; back to the order of the loops. */
  std::vector<std::size_t> order(result.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [](role what) { return what == role::batch ? 0 : what == role::out ? 1 : 2; };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int left = rank(result[a].what), right = rank(result[b].what);
    return left != right ? left < right : result[a].place < result[b].place;
  });
  shape sizes;
  std::vector<unsigned> places(result.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    sizes.push_back(stage.sizes()[order[i]]);
    places[order[i]] = static_cast<unsigned>(i);
  }
  return value(y.reshape(sizes).dimShuffle(places).reshape(whole));
}

}  // namespace ipu
}  // namespace opc

#endif  // OPC_POPLAR_CONVOLUTION_H
