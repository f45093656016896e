module github.com/detent-go/detent/examples

go 1.26.0

require github.com/detent-go/detent v0.0.0

require golang.org/x/sys v0.49.0 // indirect

replace github.com/detent-go/detent => ../
