"""Row stages as C++: tile functions, the expressions and folds in them, and their forms for short rows."""
