/* MindSpore's calls of a library for GPUs, on a machine without one: the CPU executes the kernels. TWIN is the path of the twin.
 *
 * The program plays MindSpore's part: it has the primitive's attributes, calls `Init` with shapes, gives a call the memory that this has
 * asked for behind its operands, and a stream. It prints what differs from what is expected, and nothing else.
 *
 * With IN_MINDSPORE it is a library for MindSpore on CPUs, whose calls have no stream: they are taken for calls on a GPU. */
#include <cmath>
#include <cstdio>
#include <cstring>

#if !defined(IN_MINDSPORE)
#define OPC_MINDSPORE_STREAM(stream) (stream)
#endif
#include "mindspore.h"

#include TWIN

#if !defined(IN_MINDSPORE)
namespace {

char &mindspores_stream = emulated_stream;

#define EXPECT(condition) \
  if (!(condition)) printf("line %d: %s\n", __LINE__, #condition)

/* The primitive: every input is given and every output wanted, and there is one attribute, a float. */
class Primitive : public AotExtra {
 public:
  explicit Primitive(double scale) : scale_(scale) {}
  bool HasAttr(std::string) override { return true; }
  bool GetAttrBool(std::string) override { return false; }
  int64_t GetAttrInt(std::string) override { return 0; }
  float GetAttrFloat(std::string) override { return 0; }
  std::string GetAttrStr(std::string) override { return ""; }
  std::vector<int64_t> GetAttrIntVec(std::string) override {
    int64_t bits;
    memcpy(&bits, &scale_, sizeof bits);
    return {~int64_t{0}, ~int64_t{0}, bits};
  }

 private:
  double scale_;
};

/* One call of the op `shelf` on so many rows of 3 columns, of which `ids` are asked for. */
struct ShelfCall {
  std::vector<float> t, w = {1, 10, 100}, y, total = std::vector<float>(3);
  std::vector<int64_t> ids;
  int64_t shapes[5][2];
  int ndims[5] = {2, 1, 1, 2, 1};
  int64_t *sizes[5] = {shapes[0], shapes[1], shapes[2], shapes[3], shapes[4]};
  const char *types[5] = {"float32", "int64", "float32", "float32", "float32"};

  ShelfCall(int64_t rows, std::vector<int64_t> given) : t(static_cast<size_t>(3 * rows)), y(3 * given.size()), ids(std::move(given)) {
    for (size_t i = 0; i < t.size(); ++i) t[i] = static_cast<float>(i);
    const int64_t count = static_cast<int64_t>(ids.size());
    const int64_t all[5][2] = {{rows, 3}, {count, 0}, {3, 0}, {count, 3}, {3, 0}};
    memcpy(shapes, all, sizeof shapes);
  }

  /* The bytes that MindSpore is asked for. */
  size_t init(Primitive &primitive) {
    EXPECT(ShelfInit(ndims, sizes, types, &primitive) == 0);
    return primitive.workspace.empty() ? 0 : primitive.workspace[0];
  }

  /* Calls it with the memory that was asked for, behind which no byte may change; the text of an error. */
  std::string run(Primitive &primitive, void *stream = &mindspores_stream) {
    const size_t size = primitive.workspace.empty() ? 0 : primitive.workspace[0];
    std::vector<char> memory(size + 64, 0x5A);
    void *data[6] = {t.data(), ids.data(), w.data(), y.data(), total.data(), memory.data()};
    std::string said;
    try {
      EXPECT(Shelf(size > 0 ? 6 : 5, data, ndims, sizes, types, stream, &primitive) == 0);
    } catch (const std::exception &error) {
      said = error.what();
    }
    for (size_t i = size; i < memory.size(); ++i) EXPECT(memory[i] == 0x5A);
    used = false;
    for (size_t i = 0; i < size; ++i) used = used || memory[i] != 0x5A;
    return said;
  }

  bool right(double scale) const {
    bool same = true;
    for (size_t d = 0; d < 3; ++d) {
      double sum = 0;
      for (size_t n = 0; n < ids.size(); ++n) {
        const double v = scale * (3.0 * static_cast<double>(ids[n]) + static_cast<double>(d));
        same = same && y[3 * n + d] == static_cast<float>(v * w[d]);
        sum += v;
      }
      same = same && std::fabs(total[d] - sum) <= 1e-6 * sum;
    }
    return same;
  }

  bool used = false; /* whether the kernels wrote to the memory */
};

}  // namespace

int main() {
  Primitive primitive(0.5);
  ShelfCall call(4, {2, 0, 2});
  EXPECT(call.init(primitive) >= 36);
  EXPECT(call.run(primitive) == "");
  EXPECT(call.right(0.5));
  EXPECT(call.used);
  EXPECT(emulated_calls[calls] == 1);

  /* MindSpore does not ask again when sizes change: what is missing comes from elsewhere. */
  ShelfCall longer(4, std::vector<int64_t>(1000, 3));
  EXPECT(longer.run(primitive) == "");
  EXPECT(longer.right(0.5));
  EXPECT(emulated_calls[bytes_got] > static_cast<int64_t>(primitive.workspace[0]));

  /* Nothing is known of sizes. */
  Primitive open(0.5);
  call.shapes[1][0] = -1;
  EXPECT(call.init(open) == 0);
  call.shapes[1][0] = 3;
  EXPECT(call.run(open) == "");
  EXPECT(call.right(0.5));
  EXPECT(emulated_calls[calls] == 3);

  /* Without a stream the operands are the CPU's. */
  ShelfCall host(4, {1});
  EXPECT(host.run(primitive, nullptr) == "");
  EXPECT(host.right(0.5));
  EXPECT(emulated_calls[calls] == 3);

  /* Refusals are the CPU's. */
  for (void *stream : {static_cast<void *>(&mindspores_stream), static_cast<void *>(nullptr)}) {
    ShelfCall outside(4, {2, 4});
    EXPECT(outside.run(primitive, stream).find("an index of t is 4, outside axis 0 of size 4") != std::string::npos);
    Primitive negative(-1);
    EXPECT(host.run(negative, stream) == "shelf: scale = -1 violates its check: scale >= 0");
    EXPECT(host.run(primitive, stream) == "");
  }
  EXPECT(emulated_calls[astray] == 0);
  return 0;
}
#endif
