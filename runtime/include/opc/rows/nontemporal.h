/* Which outputs of a stage are written past the caches: those of a call that moves more than the caches hold. What it writes would be
 * gone from them before anyone can read it there, and meanwhile would drive out what others may still read. */
#ifndef OPC_ROWS_NONTEMPORAL_H
#define OPC_ROWS_NONTEMPORAL_H

#include "opc/core/caches.h"
#include "opc/rows/plan.h"

namespace opc {

/* Decides whether a planned stage stores its outputs past the caches, all or none; `all` says that it computes all of them, not only
 * what is wanted.
 *
 * Sums are stored so whose elements take in one point each: they need not be set to zero before. No stage that has rows of other
 * reductions asks for it (opc/lower/rows/stores.py), as those begin with something else. */
static void plan_nontemporal(runner &r, bool all) {
  const stage &s = *r.s;
  int64_t moved = 0, outputs = 0, narrowed = 0;
  r.nontemporal = s.nontemporal;
  for (int32_t k = 0; k < s.operand_count && r.nontemporal; ++k) {
    const operand &o = s.operands[k];
    const passing &p = r.pass[k];
    if (p.data != nullptr) {
      int64_t bytes = itemsize(o.stored);
      for (int32_t a = 0; a < r.outer + r.row_axes; ++a) bytes *= p.stride[a] != 0 ? r.size[a] : 1;
      moved += bytes;
    }
    if (o.what == role_input || !o.along_row) continue;
    /* What is dropped is written to a buffer that stays in the caches; what is written in place is in them already. */
    if (p.data == nullptr) {
      r.nontemporal = !all;
      continue;
    }
    const bool formed = o.computed == dtype_float32 || converts(o); /* is_nontemporal in opc/rows/stores.h, store_converted */
    const bool narrow = p.staged && is_minifloat(o.stored) && !converts(o) && p.column_stride == 1 && o.what == role_output;
    r.nontemporal = formed && (!p.staged || narrow) && p.along && (o.what == role_output || p.own);
    ++outputs;
    narrowed += narrow;
    for (int32_t i = 0; i < s.operand_count; ++i) {
      if (i != k && r.pass[i].data == p.data) r.nontemporal = false;
    }
  }
  const int64_t cache = cache_bytes();
  const bool long_rows = !s.whole_rows || r.columns >= narrow_columns; /* the ends of short ones would be most of what is stored */
  r.nontemporal = r.nontemporal && long_rows && cache > 0 && moved >= cache && (narrowed == 0 || narrowed == outputs);
  r.narrowed = r.nontemporal && narrowed > 0;
}

}  // namespace opc
#endif  // OPC_ROWS_NONTEMPORAL_H
