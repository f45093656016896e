module github.com/detent-go/detent/lab

go 1.26.0

require (
	github.com/detent-go/detent v0.0.0
	golang.org/x/sys v0.49.0
)

replace github.com/detent-go/detent => ../
