module github.com/detent-go/detent/lab

go 1.26.0

require (
	github.com/RussellLuo/timingwheel v0.0.0-20220218152713-54845bda3108
	github.com/antlabs/timer v0.1.4
	github.com/detent-go/detent v0.0.0
	github.com/rfyiamcool/go-timewheel v1.1.0
	golang.org/x/sys v0.49.0
)

require github.com/antlabs/stl v0.0.2 // indirect

replace github.com/detent-go/detent => ../
