"""Operations over the lanes of a warp: votes, shuffles, matches, reductions (values only; who takes part is the machine's business)."""
