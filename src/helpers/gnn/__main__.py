from helpers.gnn.training import main

main()
