module espha.dev/dev/pause

go 1.24.0
